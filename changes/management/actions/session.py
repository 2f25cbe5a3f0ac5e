"""`change shell`: a person works in the box themselves, and what they did goes to the gate."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from django.core.management.base import CommandParser

from changes import asking, interactive, making
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
        "Sit before the agent yourself, on a throwaway clone of the repository, in the container "
        "it would get for a task: claude, codex and gemini start at their prompt. Another agent, "
        "--plain or --no-network gives you a shell there, and off a terminal it reads commands "
        "from standard input. When it ends, however it ends, what the clone holds then waits for "
        "you as any change does."
    )
    examples = (
        "change shell --repo . --agent claude --provider anthropic",
        'change shell --repo ~/code/app --base v1.2 --task "why is the parser slow?"',
        "change shell --repo . --agent pi --no-network",
        "change shell --repo . --agent pi --no-network < commands.sh",
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_place(parser)
        parser.add_argument(
            "--task",
            default="",
            metavar="TEXT",
            help="the first message to the agent, and what the session is about for who reads it",
        )
        parser.add_argument(
            "--no-skip-permissions",
            dest="asks",
            action="store_true",
            help="the agent asks before it acts, as it would by itself; the box is the same",
        )
        parser.add_argument(
            "--plain", action="store_true", help="a shell, not the agent's own interface"
        )
        add_session_flags(parser)
        add_engine_flags(parser)

    def act(self, **options: Any) -> int:
        shell = "tty" if sys.stdin.isatty() and sys.stdout.isatty() else "pipe"
        path = place_of(options)
        asked = {**NOT_ASKED, **sanduk_shell.NOT_ASKED, **options, "shell": shell}
        wanted = options_of({**asked, "task": options["task"] or TASK}, path)
        order = interactive.order_of(wanted.order, seed=options["task"], plain=options["plain"])
        wanted = dataclasses.replace(wanted, order=order)
        change = asking.ask(
            str(path), wanted.order.task, options=wanted, person=here(), kind=Change.Kind.SHELL
        )
        console = (BesideShell if shell == "tty" else Terminal)(quiet=options["quiet"])
        if not options["quiet"]:
            self.say(f"{change} on {change.repository.name}, from {change.base_commit[:12]}")
        done = making.session(change.uid, tell=console)
        return told_end(self, done, {**options, "json": False})
