"""`sanduk tick`: one look at what is due, for cron and for those without a worker."""

from __future__ import annotations

import signal
from typing import Any

from django.core.management.base import CommandParser

from assistants.foreground import Foreground
from assistants.management import telling
from assistants.models import Wakeup
from assistants.named import one_assistant
from assistants.ticking import wake_by_hand
from runs.audit import account
from runs.management.terminal import SandukCommand, add_json_flag


class Command(SandukCommand):
    help = "Wake every assistant that is due, stay until they are done, deliver what is approved."
    examples = ("tick", "tick --name daily-report", "tick --json")
    ends_lost_runs = False  # it is the first thing a look does

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", metavar="NAME", help="only this one, due or not")
        parser.add_argument("-q", "--quiet", action="store_true", help="say only what went wrong")
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        ended: list[Wakeup] = []
        troubles: list[str] = []

        def on_end(wakeup: Wakeup) -> None:
            ended.append(wakeup)
            if not options["json"] and not (options["quiet"] and wakeup.outcome in telling.QUIET):
                self.print(telling.line(wakeup))

        def on_trouble(sentence: str) -> None:
            troubles.append(sentence)
            self.say(sentence)

        with Foreground(on_end, on_trouble) as foreground:
            if options["name"]:
                assistant = one_assistant(options["name"])
                foreground.just(wake_by_hand(assistant, asked_by=account()))
            else:
                foreground.once()
        if options["json"]:
            self.print_json([telling.as_json(wakeup) for wakeup in ended])
        return _code(troubles, foreground.stopped_by)


def _code(troubles: list[str], stopped_by: signal.Signals | None) -> int:
    """A failed wakeup is no failure of this command: it did what was due. Its own trouble is."""
    if stopped_by is not None:
        return 130 if stopped_by == signal.SIGINT else 143
    return 1 if troubles else 0
