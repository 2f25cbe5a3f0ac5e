"""`sanduk cluster`: one cluster of the queue, as `sanduk worker` starts it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from runs import queue
from runs.management.terminal import SandukCommand


class Command(SandukCommand):
    help = "Run one cluster of the queue (used by worker)."
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("parent", type=int, help="the process it ends with")
        # Q_CLUSTER_NAME chooses; the word is for people who look at a list of processes
        parser.add_argument("name", choices=(queue.CONTROL, queue.RUNS))

    def act(self, **options: Any) -> int:
        queue.run_cluster(options["parent"])
        return 0
