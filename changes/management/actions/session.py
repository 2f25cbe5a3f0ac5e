"""`change shell`: a person works in the box themselves, and what they did goes to the gate."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandParser

from changes import asking, making
from changes.management.acting import ChangeCommand, here
from changes.management.actions.making import NOT_ASKED, add_place, options_of, place_of, told_end
from changes.models import Change
from runs.console import BesideShell, Terminal
from runs.management.commands import sanduk_shell
from runs.management.run_flags import add_session_flags
from runs.management.terminal import add_engine_flags

TASK = "a session at a terminal"


class Shell(ChangeCommand):
    help = (
        "Open a shell in the container an agent would get, on a throwaway clone of the repository. "
        "When it ends, however it ends, what the clone holds then waits for you as any change "
        "does. Off a terminal it reads commands from standard input."
    )
    examples = (
        "change shell --repo . --agent pi --no-network",
        'change shell --repo ~/code/app --base v1.2 --task "tried the new parser"',
        "change shell --repo . --agent pi --no-network < commands.sh",
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_place(parser)
        parser.add_argument(
            "--task", default=TASK, metavar="TEXT", help="what it is about, for whoever reads it"
        )
        add_session_flags(parser)
        add_engine_flags(parser)

    def act(self, **options: Any) -> int:
        shell = "tty" if sys.stdin.isatty() and sys.stdout.isatty() else "pipe"
        path = place_of(options)
        asked = {**NOT_ASKED, **sanduk_shell.NOT_ASKED, **options, "shell": shell}
        wanted = options_of(asked, path)
        change = asking.ask(
            str(path), options["task"], options=wanted, person=here(), kind=Change.Kind.SHELL
        )
        console = (BesideShell if shell == "tty" else Terminal)(quiet=options["quiet"])
        if not options["quiet"]:
            self.say(f"{change} on {change.repository.name}, from {change.base_commit[:12]}")
        done = making.session(change.uid, tell=console)
        return told_end(self, done, {**options, "json": False})
