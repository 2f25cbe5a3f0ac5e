"""The documents, held to the code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from runs.models.run import EXIT_CODES

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def test_the_page_of_commands_is_what_the_commands_say():
    command = [sys.executable, str(ROOT / "scripts" / "docs-commands"), "--check"]
    done = subprocess.run(command, check=False)
    assert done.returncode == 0, "run scripts/docs-commands and commit docs/commands.md"


def test_the_tables_of_agents_and_providers_are_what_the_program_accepts():
    command = [sys.executable, str(ROOT / "scripts" / "docs-agents"), "--check"]
    done = subprocess.run(command, check=False)
    assert done.returncode == 0, "run scripts/docs-agents and commit README.md, docs/agents.md"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_example_engine_is_shown_whole():
    page = (ROOT / "docs" / "engines.md").read_text()
    example = (ROOT / "tests" / "engine" / "example_engine.py").read_text()

    assert re.findall(r"```python\n(.*?)```", page, re.DOTALL) == [example]


def test_every_outcome_and_its_exit_code_stands_in_the_operations_page():
    page = (ROOT / "docs" / "operations.md").read_text()
    for outcome, code in EXIT_CODES.items():
        assert re.search(rf"\| {outcome} \| {code} \|", page), outcome


def test_make_help_lists_every_target():
    listed = subprocess.run(
        ["make", "-s", "help"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    phony = (ROOT / "Makefile").read_text().partition(".PHONY:")[2].partition("\n\n")[0]
    for target in phony.replace("\\", " ").split():
        assert target in listed, target


def test_the_make_targets_name_no_engine():
    makefile = (ROOT / "Makefile").read_text().replace("engine-up --podman", "")
    assert not re.search(r"\b(docker|podman)\b", makefile)
