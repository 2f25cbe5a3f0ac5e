"""`sanduk wake`: one assistant, woken here and now."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandParser

from assistants.management import telling
from assistants.management.commands.sanduk_wakeup import told_to_stop
from assistants.named import one_assistant
from assistants.ticking import wake_by_hand
from assistants.wakeups import wake
from runs.audit import account
from runs.console import Terminal
from runs.management.terminal import SandukCommand, add_json_flag


class Command(SandukCommand):
    help = "Wake an assistant now, whatever its schedule and its back-off say, and follow it."
    examples = ("wake daily-report", "wake daily-report --json")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME")
        parser.add_argument("-q", "--quiet", action="store_true", help="say only what went wrong")
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        return wake_here(self, options["name"], quiet=options["quiet"], as_json=options["json"])


def wake_here(command: SandukCommand, name: str, *, quiet: bool, as_json: bool) -> int:
    """Wake it in this process, and tell how that ended. Raises Refusal."""
    assistant = one_assistant(name)
    asked = wake_by_hand(assistant, asked_by=account())
    told_to_stop()
    wakeup = wake(asked.pk, Terminal(quiet=quiet, trace_to_stderr=as_json))
    if wakeup is None:
        # another process was faster: with this very wakeup, or with another one of the assistant
        command.say(f"wakeup {asked.pk} of {name} is executed, or held up, by another process")
        return 1
    if as_json:
        command.print_json(telling.as_json(wakeup))
    elif quiet or not (sys.stdout.isatty() and sys.stderr.isatty()):
        command.print(telling.line(wakeup))  # else it stands there: the progress said it
    return telling.exit_code(wakeup)
