"""`sanduk change`: a task on a repository, a patch out, a person at the gate."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandParser

from changes.management.actions import ACTIONS, found
from runs.management.terminal import SandukCommand, add_actions


class Command(SandukCommand):
    """Each action has flags of its own: this only finds out which was meant."""

    help = (
        "Tasks on a repository: an agent works on a throwaway clone, and what it changed lands on "
        "a branch when a person accepted it. sanduk change ACTION --help explains one."
    )
    examples = (
        'change run --repo ~/code/app --task "make the parser faster"',
        "change list",
        "change show 3f2a9c",
        "change accept 3f2a9c --expect 9d0c21e4b7aa",
    )
    keeps_state = False

    def add_arguments(self, parser: CommandParser) -> None:
        add_actions(parser, {name: told for name, (_, _, told) in ACTIONS.items()})
        words = parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
        words.required = False

    def run_from_argv(self, argv: list[str]) -> None:
        if len(argv) > 2 and argv[2] in ACTIONS:
            found(argv[2])().run_from_argv([argv[0], f"{argv[1]} {argv[2]}", *argv[3:]])
        super().run_from_argv(argv)

    def act(self, **options: Any) -> int:
        action = found(options["action"])()
        parser = action.create_parser("sanduk", f"sanduk_change {options['action']}")
        asked = vars(parser.parse_args(options["words"]))
        asked.pop("args", None)
        return int(action.guarded(**asked))
