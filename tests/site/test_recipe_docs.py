"""docs/kits.md and docs/recipes.md: what they tell a newcomer to type works, in that order."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from recipes import kit_names, load, recipe_names
from recipes.catalog import SHIPPED, SHIPPED_KITS
from recipes.schema import KitFile, RecipeFile
from tests.migrated import prepared

ROOT = Path(__file__).resolve().parents[2]
KITS = (ROOT / "docs" / "kits.md").read_text("utf-8")
RECIPES = (ROOT / "docs" / "recipes.md").read_text("utf-8")
# an image is built by the tests that have an engine; here as far as it goes without one
WITHOUT_ENGINE = """\
sanduk() {
    if [ "$1" = build ]; then set -- "$@" --dry-run; fi
    "$PYTHON" -m sanduk_site "$@"
}
"""


def typed(page: str) -> str:
    return "\n".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL))


@pytest.fixture
def followed(tmp_path: Path):
    """followed(page): a newcomer's home after typing everything the page says."""

    def follow(page: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-eu", "-c", WITHOUT_ENGINE + typed(page)],
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "PYTHON": sys.executable,
                "PYTHONPATH": str(ROOT),
                "SANDUK_HOME": str(prepared(tmp_path / "state")),
            },
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    return follow


def test_a_newcomer_adds_a_kit_by_typing_what_the_page_says(followed, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    done = followed(KITS)

    assert done.returncode == 0, done.stderr
    recipe = load(str(tmp_path / ".config" / "sanduk" / "recipes" / "my-pi.json"))
    [kit] = recipe.kits
    assert (kit.name, kit.pinned) == ("count-todos", True)
    script = tmp_path / ".config/sanduk/kits/count-todos/files/count-todos"
    (tmp_path / "a.txt").write_text("TODO one\nTODO two\n")
    counted = subprocess.run(
        ["sh", script, "."], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "./a.txt:2\n" in counted.stdout
    assert "# image: sanduk-my-pi:" in done.stdout
    assert f'sanduk.kits="count-todos@{kit.sha256}"' in done.stdout


def test_a_newcomer_adds_a_recipe_by_typing_what_the_page_says(followed):
    done = followed(RECIPES)

    assert done.returncode == 0, done.stderr
    assert "# image: sanduk-my-codex:" in done.stdout


def test_the_first_example_of_the_page_loads(tmp_path: Path):
    [example] = re.findall(r"```json\n(.*?)```", RECIPES, re.DOTALL)
    name = json.loads(example)["name"]
    (tmp_path / f"{name}.json").write_text(example)

    assert load(str(tmp_path / f"{name}.json")).agent == "claude"


@pytest.mark.parametrize(("page", "kind"), [(RECIPES, RecipeFile), (KITS, KitFile)])
def test_every_key_of_the_format_is_in_the_table(page: str, kind):
    named = set(re.findall(r"`([$a-z]+)`", "".join(re.findall(r"(?m)^\| (`.*?) \|", page))))
    for key in kind.__struct_encode_fields__:
        assert key in named, key


def test_the_shipped_kits_are_those_of_the_page():
    shipped = {path.name for path in SHIPPED_KITS.iterdir()}
    assert shipped <= set(kit_names())
    assert shipped == set(re.findall(r"(?m)^\| `([a-z-]+)` \| .*", KITS.split("\n## ")[0]))
    assert {path.stem for path in SHIPPED.glob("*.json")} <= set(recipe_names())


def test_python_is_shown_as_it_is_called(tmp_path: Path):
    [example] = re.findall(r"```python\n(.*?)```", RECIPES, re.DOTALL)
    exec(example, {"directory": tmp_path})  # noqa: S102 our own page

    assert (tmp_path / "Containerfile").is_file()
