"""The kits shipped with sanduk, and the recipe that pins one."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from recipes import kit_names, load, load_kit, render
from recipes.catalog import SHIPPED, SHIPPED_KITS
from recipes.schema import Apt, Binary
from runs.agents import agent_names, get_agent
from runs.plan import from_recipe

D2 = {
    "amd64": "5669ddc46b99e942cc96078f4a4e36d5e62103348f4c05179ede27802fdd87a9",
    "arm64": "ac2c028697199479acb321db1e3d68caee9f2ba492ed73caa3cd13f3829bf913",
}
OFFICECLI = {
    "amd64": "faceb42654004f1fa5c40fb0ce641c42b7dc5a2beb270f25971ea6265b7dc227",
    "arm64": "93bea35aaa8f153a56a4f6e1a7d22d82aec379e42ce2d45b24b0941dcfd50968",
}


def test_there_are_these() -> None:
    assert {"browser", "docs", "toolchain"} <= set(kit_names())
    assert {path.name for path in SHIPPED_KITS.iterdir()} <= set(kit_names())


def test_the_downloads_of_docs_are_the_pinned_ones() -> None:
    tools = {tool.section.name: tool.section for tool in load_kit("docs").tools}
    for name, expected in (("d2", D2), ("officecli", OFFICECLI)):
        section = tools[name]
        assert isinstance(section, Binary)
        assert {arch: made.sha256 for arch, made in section.artifacts.items()} == expected


def test_claude_docs_is_claude_with_docs_pinned_by_itself() -> None:
    recipe, image = from_recipe("claude-docs")
    assert recipe.agent == "claude"
    assert [(kit.name, kit.pinned) for kit in recipe.kits] == [("docs", True)]
    assert image.context is not None
    files = image.context.files
    assert files["skills/d2/SKILL.md"].content == (
        (SHIPPED_KITS / "docs" / "skills" / "d2" / "SKILL.md").read_bytes()
    )
    text = image.context.containerfile
    assert "place-skills.sh /usr/local/share/sanduk/skills /home/node .claude/skills node" in text
    for name in ("steps/docs-d2.sh", "steps/docs-officecli.sh", "steps/docs-skill-officecli.sh"):
        done = subprocess.run(["sh", "-n"], input=files[name].content, check=False)
        assert done.returncode == 0


@pytest.mark.parametrize("agent", agent_names())
@pytest.mark.parametrize("kit", ["browser", "docs", "toolchain"])
def test_a_shipped_kit_goes_with_every_agent_that_reads_what_it_holds(agent: str, kit: str) -> None:
    made = get_agent(agent)
    recipe = load(made.recipe, kits=[kit])
    if recipe.kits[0].skills and made.skills_dir is None:
        assert agent == "prime"
        return
    text = render(
        recipe, instructions_file=made.instructions_file, skills_dir=made.skills_dir
    ).containerfile
    assert f'sanduk.kits="{kit}@{recipe.kits[0].sha256}"' in text


def test_the_toolchain_is_debian_s_packages_only() -> None:
    kit = load_kit("toolchain")
    installed = {
        package
        for tool in kit.tools
        if isinstance(tool.section, Apt)
        for package in tool.section.install
    }
    assert installed >= {"build-essential", "golang-go", "rustc", "cargo", "python3-venv"}
    assert kit.marks == ("apt",)


@pytest.mark.parametrize("path", sorted(SHIPPED.rglob("*.json")), ids=lambda path: path.stem)
def test_no_shipped_file_names_a_version_that_moves(path: Path) -> None:
    assert not re.search(r"@latest|/latest/|/main/|/master/", path.read_text())
