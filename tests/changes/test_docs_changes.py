"""docs/changes.md names what there is; tests/engine/test_change_documented.py executes it."""

from __future__ import annotations

import re
from pathlib import Path

from changes.management.actions import ACTIONS
from sanduk_site.cli import ALIASES, meant

PAGE = (Path(__file__).parents[2] / "docs" / "changes.md").read_text()


def test_every_action_is_told_of():
    for action in ACTIONS:
        assert re.search(rf"\b{action}\b", PAGE), action


def test_every_other_name_is_told_of():
    for alias in ALIASES:
        assert " ".join(alias) in PAGE.replace("\n", " "), alias


def test_every_command_of_the_page_is_one():
    for words in re.findall(r"sanduk ((?:change|skills) [a-z]+)", PAGE):
        command, action = meant(words.split())
        assert command == "skills" or action in ACTIONS, words


def test_it_says_what_codex_cannot_do_in_the_box():
    """tests/engine/test_change_session_agents.py shows that it is so."""
    said = " ".join(PAGE.split())
    assert "in a container without privileges: what codex runs unasked fails there." in said
