"""Recipes and images on pages: what is pinned, what is built, and what no recipe is left of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.urls import reverse

import recipes
from runs import shelf
from runs.engines.base import EngineError, ImageRow
from tests.site.pages import SCRIPT, somebody

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(client, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    client.force_login(somebody("vera", "viewer"))
    return client


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Where recipes of this account are."""
    place = tmp_path / "sanduk" / "recipes"
    place.mkdir(parents=True)
    return place


def built(number: int, recipe: str, **labels: str) -> ImageRow:
    said = {"sanduk.recipe": recipe, **labels}
    return ImageRow(
        f"sha256:{number}", (f"sanduk-{recipe}:{number}",), said, 3 * 10**8, "2026-01-02T10:00:00Z"
    )


def text_of(client, name: str, *args: str, **query: str) -> str:
    return client.get(reverse(name, args=args), query).content.decode()


def test_every_recipe_is_listed_with_its_agent_and_no_engine_is_asked(client, monkeypatch):
    monkeypatch.setattr("runs.stock.listed", None)
    text = text_of(client, "images")
    for name in recipes.recipe_names():
        assert reverse("recipe", args=[name]) in text
    assert shelf.one("pi").tag in text


def test_asked_the_engine_tells_what_is_built_and_of_what_no_recipe_is_left(client, monkeypatch):
    async def listed(engine):
        return [built(1, "pi"), built(2, "gone")]

    monkeypatch.setattr("runs.stock.listed", listed)
    text = text_of(client, "images", engine="ask")
    of_recipes, _, others = text.partition("Other images")
    assert "sanduk-pi:1" in of_recipes
    assert "286.1" in of_recipes  # megabytes
    assert "not built" in of_recipes
    assert "sanduk-gone:2" in others
    assert "no recipe" in others
    assert "sanduk-gone" not in of_recipes


def test_an_engine_that_cannot_be_asked_is_told_and_the_recipes_stay(client, monkeypatch):
    async def listed(engine):
        raise EngineError(f"it does not answer {SCRIPT}")

    async def ready(engine):
        raise EngineError(f"start it first {SCRIPT}")

    monkeypatch.setattr("runs.stock.listed", listed)
    monkeypatch.setattr("runs.engines.docker.Docker.ready", ready)
    monkeypatch.setattr("runs.engines.podman.Podman.ready", ready)
    text = text_of(client, "images", engine="ask")
    assert "start it first" in text
    assert SCRIPT not in text
    assert reverse("recipe", args=["pi"]) in text


def test_a_recipe_says_its_pins_and_shows_its_containerfile(client):
    text = text_of(client, "recipe", "pi")
    pinned = [each for section in shelf.one("pi").pinned for each in section.what]
    assert any("@" in each for each in pinned)
    assert "FROM " in text
    assert shelf.one("pi").base in text


def test_a_recipe_that_is_not_built_says_why(client, own):
    (own / "broken.json").write_text('{"name": "broken"')
    loose = {"name": "loose", "inherits": "pi", "user": "root"}
    (own / "loose.json").write_text(json.dumps(loose))
    assert "cannot be built" in text_of(client, "images")
    assert "broken.json" in text_of(client, "recipe", "broken")
    text = text_of(client, "recipe", "loose")
    assert "root" in text.partition("errornote")[2].partition("</p>")[0]
    assert "Containerfile" not in text


def test_only_names_of_the_catalogue_are_recipes(client):
    assert client.get(reverse("recipe", args=["nothing"])).status_code == 404
    assert client.get("/images/..%2f..%2fetc/").status_code == 404


def test_what_a_recipe_says_of_itself_is_text(client, own):
    told = {"name": "evil", "inherits": "pi", "description": SCRIPT}
    (own / "evil.json").write_text(json.dumps(told))
    assert SCRIPT not in text_of(client, "recipe", "evil")
    assert "&lt;script&gt;" in text_of(client, "recipe", "evil")
