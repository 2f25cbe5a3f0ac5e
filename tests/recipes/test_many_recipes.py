"""A directory of many recipes that cannot be used: listing them looks once and stays readable."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest

from recipes import RecipeError, catalog, load
from runs.management.commands.sanduk_list import Command

MANY = 120


@pytest.fixture
def broken(config_home: Path) -> Path:
    """As many of the user's recipes, each inheriting one that is not there."""
    place = config_home / "sanduk" / "recipes"
    place.mkdir(parents=True)
    for number in range(MANY):
        told = {"name": f"broken-{number}", "inherits": f"gone-{number}"}
        (place / f"broken-{number}.json").write_text(json.dumps(told))
    return place


class Looks:
    """Counts how often packages, and the user's directory, are looked through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
        self.packages = self.directories = 0
        ask, walk = importlib.metadata.entry_points, Path.iterdir

        def entry_points(**wanted: Any) -> Any:
            self.packages += 1
            return ask(**wanted)

        def iterdir(path: Path) -> Any:
            self.directories += path == directory
            return walk(path)

        monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
        monkeypatch.setattr(Path, "iterdir", iterdir)


def test_a_listing_looks_through_packages_and_directories_once(
    broken: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = Looks(monkeypatch, broken)

    assert Command().act(what="recipes", json=True) == 0
    listed = {row["name"]: row["description"] for row in json.loads(capsys.readouterr().out)}
    assert listed[f"broken-{MANY - 1}"].endswith("A path needs a slash or the ending .json")
    assert len([name for name in listed if name.startswith("broken-")]) == MANY
    assert (looks.packages, looks.directories) == (1, 1)


def test_what_is_known_is_looked_at_again_after_a_listing(broken: Path) -> None:
    with catalog.seen_once():
        before = catalog.recipe_names()
        (broken / "late.json").write_text("{}")
        assert catalog.recipe_names() == before
    assert "late" in catalog.recipe_names()


def test_the_error_of_an_unknown_name_does_not_list_thousands(broken: Path) -> None:
    with pytest.raises(RecipeError) as refused:
        load("nowhere")

    more = len(catalog.recipe_names()) - catalog.NAMES_SHOWN
    assert f" and {more} more. A path" in str(refused.value)
    assert str(refused.value).count(",") == catalog.NAMES_SHOWN - 1
