"""`sanduk COMMAND ACTION --help` is about that action alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.management import load_command_class

COMMANDS = {
    "assistant": "assistants",
    "auth": "runs",
    "destination": "assistants",
    "key": "assistants",
    "kit": "runs",
    "memory": "assistants",
    "recipe": "runs",
    "share": "assistants",
    "skills": "changes",
}
ACTIONS = [
    (name, action)
    for name, app in COMMANDS.items()
    for action in load_command_class(app, f"sanduk_{name}").actions.told  # type: ignore[attr-defined]
]


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def ask(name: str, *words: str) -> str:
        command = load_command_class(COMMANDS[name], f"sanduk_{name}")
        with pytest.raises(SystemExit) as left:
            command.run_from_argv(["sanduk", f"sanduk_{name}", *words])
        assert left.value.code == 0
        return capsys.readouterr().out

    return ask


@pytest.mark.parametrize(("name", "action"), ACTIONS)
def test_each_action_has_a_usage_what_it_does_and_an_example(asked, name, action):
    page = asked(name, action, "--help")

    what = f"memory NAME {action}" if name == "memory" else f"{name} {action}"
    assert page.startswith(f"usage: sanduk {what} [-h]")
    command = load_command_class(COMMANDS[name], f"sanduk_{name}")
    assert command.actions.told[action] in page  # type: ignore[attr-defined]
    examples = page.partition("examples:\n")[2].splitlines()
    assert examples
    assert all(f" {action}" in line for line in examples)


@pytest.mark.parametrize(
    ("words", "has", "lacks"),
    [
        (("assistant", "list"), "--json", "--limit"),
        (("assistant", "history"), "--limit", "--reason"),
        (("memory", "daily", "reject"), "--reason", "--limit"),
        (("destination", "remove"), "NAME", "--webhook"),
        (("destination", "add"), "--webhook", "--json"),
        (("skills", "list"), "--all", "--expect"),
        (("share", "list"), "ASSISTANT", "PERSON"),
        (("recipe", "schema"), "--json", "--inherits"),
    ],
)
def test_it_shows_the_flags_of_that_action_alone(asked, words, has, lacks):
    usage = asked(*words, "-h").partition("examples:")[0]

    assert has in usage
    assert lacks not in usage


def test_without_an_action_the_page_is_of_the_whole_command(asked):
    page = asked("assistant", "--help")

    assert page.startswith("usage: sanduk assistant [-h]")
    assert all(flag in page for flag in ("--limit", "--reason", "--purge"))
