"""`sanduk serve`: tick on a loop, in the foreground."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from django.core.management.base import CommandParser

from assistants.foreground import Foreground
from assistants.management import telling
from assistants.models import Wakeup
from runs import duration
from runs.management.terminal import SandukCommand


class Command(SandukCommand):
    help = "Wake assistants when they are due and deliver what is approved, until Ctrl-C."
    examples = ("serve", "serve --interval 10s")
    ends_lost_runs = False  # every look begins with that

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--interval", default="30s", metavar="DURATION", help="look at least this often (30s)"
        )
        parser.add_argument("-q", "--quiet", action="store_true", help="say only what went wrong")

    def act(self, **options: Any) -> int:
        interval_s = duration.seconds(options["interval"], what="--interval", longest_s=86400)

        def on_end(wakeup: Wakeup) -> None:
            if not (options["quiet"] and wakeup.outcome in telling.QUIET):
                self.print(telling.line(wakeup))

        with Foreground(on_end, self.say) as foreground:
            if not options["quiet"]:
                self.say("serving; Ctrl-C stops it")
            foreground.on_and_on(interval_s)
        code = 130 if foreground.stopped_by == signal.SIGINT else 0
        if foreground.is_delivering:
            sys.stdout.flush()
            os._exit(code)  # its threads would be waited for
        return code
