"""A flag that takes a value takes no empty one: what should guard something would guard nothing."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest
from django.core.management import get_commands, load_command_class

from runs.management.terminal import SandukCommand


def flags() -> Iterator[tuple[str, str]]:
    for name, app in sorted(get_commands().items()):
        command = load_command_class(app, name) if name.startswith("sanduk_") else None
        if isinstance(command, SandukCommand):
            for action in command.create_parser("sanduk", name)._actions:
                if action.option_strings and action.nargs != 0 and action.help != argparse.SUPPRESS:
                    yield name, action.option_strings[-1]


def test_there_are_such_flags():
    assert {("sanduk_approve", "--expect"), ("sanduk_tell", "--source-id")} <= set(flags())


@pytest.mark.parametrize(("name", "flag"), list(flags()))
def test_an_empty_value_is_refused(name, flag, capsys):
    for words in ([flag, ""], [f"{flag}="], [f"{flag}= "]):
        command = load_command_class(get_commands()[name], name)
        with pytest.raises(SystemExit) as ended:
            command.create_parser("sanduk", name).parse_args(words)

        assert ended.value.code == 2
        assert "its value is empty; leave the flag out instead" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "flag"), list(flags()))
def test_two_dashes_are_no_value(name, flag, capsys):
    command = load_command_class(get_commands()[name], name)
    with pytest.raises(SystemExit) as ended:
        command.create_parser("sanduk", name).parse_args([f"{flag}=--"])

    assert ended.value.code == 2
    assert "-- is no value" in capsys.readouterr().err
