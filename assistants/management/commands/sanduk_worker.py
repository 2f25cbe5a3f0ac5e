"""`sanduk worker`: what wakes assistants and executes runs, as one process to supervise."""

from __future__ import annotations

from typing import Any

from assistants.worker import Worker, the_only_one
from runs.management.terminal import SandukCommand


class Command(SandukCommand):
    help = (
        "Wake assistants when they are due, deliver what is approved and execute what the web asks "
        "for, until SIGTERM or Ctrl-C. A second signal does not wait for what is under way."
    )
    examples = ("worker",)
    ends_lost_runs = False  # the first look does that

    def act(self, **options: Any) -> int:
        with the_only_one():
            return Worker(self.say).live()
