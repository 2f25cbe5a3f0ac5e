"""The recipes of sanduk 0.3.1, as its published wheel holds them: data only, none of its code."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from recipes import RecipeError, load, load_kit, render
from recipes.catalog import SHIPPED_KITS
from recipes.pins import problems
from runs.agents import get_agent
from runs.management.commands.sanduk_build import Command
from tests.recipes.conftest import sha

VERSION = "0.3.1"
AGENTS = ("claude", "codex", "hax", "hermes", "minima", "opencode", "pi", "prime")
SUFFIXES = {".json", ".md", ""}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its resources, unpacked: recipes and kits."""
    place = tmp_path_factory.mktemp("first")
    words = ["download", "--quiet", "--no-deps", "--only-binary", ":all:", f"sanduk=={VERSION}"]
    command = [sys.executable, "-m", "pip", *words, "--dest", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("pip did not get the first program's wheel within a minute")
    if done.returncode:
        pytest.skip(f"pip cannot get sanduk {VERSION}: {done.stderr.strip().splitlines()[-1:]}")
    [wheel] = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if "/resources/" in name and Path(name).suffix in SUFFIXES and not name.endswith("/"):
                archive.extract(name, place)
    return place / "sanduk" / "resources"


@pytest.mark.parametrize("agent", AGENTS)
def test_its_agent_recipes_load_and_render(first: Path, agent: str) -> None:
    recipe = load(str(first / "recipes" / f"{agent}.json"))
    assert (recipe.name, recipe.agent) == (agent, agent)
    assert list(problems(recipe)) == []
    ours = get_agent(agent)
    for arch in ("amd64", "arm64"):
        made = render(
            recipe,
            arch=arch,  # type: ignore[arg-type]
            instructions_file=ours.instructions_file,
            skills_dir=ours.skills_dir,
        )
        assert made.containerfile.startswith(f"# The image of the recipe {agent},")


@pytest.mark.parametrize("agent", AGENTS)
def test_build_dry_run_prints_its_agent_recipes(
    first: Path, agent: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = first / "recipes" / f"{agent}.json"
    with pytest.raises(SystemExit) as ended:
        Command().run_from_argv(["sanduk", "sanduk_build", "-r", str(path), "--dry-run"])
    out, err = capsys.readouterr()
    assert (ended.value.code, err) == (0, "")
    assert out.startswith(f"# image: sanduk-{agent}:")
    assert f"FROM {load(str(path)).base}\n" in out


def test_its_claude_docs_is_refused_by_its_own_pin_with_both_hashes(first: Path) -> None:
    """It names the kit docs, which here is ours, with a skill in our own words."""
    path = first / "recipes" / "claude-docs.json"
    its_own, ours = first / "kits" / "docs" / "kit.json", SHIPPED_KITS / "docs" / "kit.json"
    with pytest.raises(RecipeError) as caught:
        load(str(path))
    said = str(caught.value)
    assert said.startswith(f"{path}: $.kits[0].sha256: recipe claude-docs pins kit docs at ")
    assert sha(its_own) in said
    assert f"{ours} has {sha(ours)}" in said


def test_its_kit_docs_loads_with_the_hash_its_recipe_pins(first: Path) -> None:
    kit = load_kit(str(first / "kits" / "docs"))
    assert kit.sha256 in (first / "recipes" / "claude-docs.json").read_text()
    assert [skill.name for skill in kit.skills] == ["d2", "officecli"]


def test_a_recipe_of_its_own_with_its_kit_by_path_is_built(first: Path, tmp_path: Path) -> None:
    kit = load_kit(str(first / "kits" / "docs"))
    path = tmp_path / "mine.json"
    pin = {"path": str(first / "kits" / "docs"), "sha256": kit.sha256}
    parent = str(first / "recipes" / "claude.json")
    path.write_text(json.dumps({"name": "mine", "inherits": parent, "kits": [pin]}))
    made = render(load(str(path)), skills_dir=".claude/skills")
    assert f'sanduk.kits="docs@{kit.sha256}"' in made.containerfile
    ours, its = (
        {tool.section.name: tool.section for tool in each.tools} for each in (load_kit("docs"), kit)
    )
    for name in ("d2", "officecli"):
        assert ours[name].artifacts == its[name].artifacts  # type: ignore[union-attr]
