"""`sanduk wakeup`: one waiting wakeup, executed in this process; what `tick` and `serve` start."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any, NoReturn

from django.core.management.base import CommandParser

from assistants.management import telling
from assistants.wakeups import wake
from runs.console import Terminal
from runs.interrupts import is_ignored
from runs.management.terminal import SandukCommand


class Command(SandukCommand):
    help = "Execute a wakeup that waits (used by tick and serve)."
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", type=int)

    def act(self, **options: Any) -> int:
        told_to_stop()
        wakeup = wake(options["id"], Terminal(quiet=True))
        return 0 if wakeup is None else telling.exit_code(wakeup)


def told_to_stop() -> None:
    """Have SIGTERM and SIGHUP end this process by an exception.

    Before and after a run their default action would end it without a word in the rows.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if not is_ignored(number):
            signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
