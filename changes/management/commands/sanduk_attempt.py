"""`sanduk attempt`: one queued change, made in this process; what batches and --detach start."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from changes.making import make
from changes.models import Change
from runs.console import Terminal
from runs.management.terminal import SandukCommand


class Command(SandukCommand):
    help = "Make the attempt of a queued change (used by batches and --detach)."
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("uid")

    def act(self, **options: Any) -> int:
        change = make(options["uid"], tell=Terminal(trace_to_stderr=True))
        return 0 if change.state in (Change.State.REVIEW, Change.State.UNCHANGED) else 1
