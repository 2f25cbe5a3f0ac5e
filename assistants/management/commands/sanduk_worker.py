"""`sanduk worker`: what wakes assistants and executes runs, as one process to supervise."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

from django.conf import settings
from django.db import DatabaseError

from assistants import ticking, working
from runs import pulse, queue
from runs.locks import held_if_free
from runs.management.terminal import SandukCommand
from runs.refusal import Refusal
from runs.worker import Clusters

LOOK_S = 1.0
LOCK = "worker"


class Command(SandukCommand):
    help = (
        "Wake assistants when they are due, deliver what is approved and execute what the web asks "
        "for, until SIGTERM or Ctrl-C. A second signal does not wait for what is under way."
    )
    examples = ("worker",)
    ends_lost_runs = False  # the first look does that

    def act(self, **options: Any) -> int:
        with held_if_free(LOCK) as free:
            if not free:
                raise Refusal("another worker of this installation runs already")
            return Worker(self).live()


class Worker:
    """Two clusters and a clock."""

    def __init__(self, command: SandukCommand) -> None:
        self._command = command
        self._signals = 0
        self._news = threading.Event()

    def live(self) -> int:
        before = {n: signal.signal(n, self._told) for n in (signal.SIGTERM, signal.SIGINT)}
        try:
            queue.keep_clock(working.TICK)
            clusters = Clusters(_busy, self._command.say)
            try:
                mended = self._watch(clusters)
            finally:
                clusters.drain(settings.SANDUK_DRAIN_SECONDS, lambda: self._signals > 1)
                _recover_what_was_cut(self._command)
            return 0 if mended else 1
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _told(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        self._news.set()

    def _watch(self, clusters: Clusters) -> bool:
        """Until a signal. False when a cluster cannot be kept alive."""
        watchdog = working.Watchdog()
        self._command.say("the worker is up; SIGTERM or Ctrl-C stops it")
        while not self._signals:
            pulse.stamp("worker")
            if not clusters.mend():
                return False
            working.nudge()
            try:
                hanging = watchdog.hanging()
            except DatabaseError as exc:
                self._command.say(f"the database does not answer: {exc}")
                hanging = {}
            for name, why in hanging.items():
                clusters.restart(name, why)
            self._news.wait(LOOK_S)
        return True


def _busy() -> list[int]:
    try:
        return working.busy_pids()
    except DatabaseError:
        return []


def _recover_what_was_cut(command: SandukCommand) -> None:
    """End what did not end in time, so that the next start finds it waiting."""
    try:
        done = ticking.end_lost()
    except DatabaseError as exc:
        command.say(f"what was under way is ended by the next start: {exc}")
        return
    for trouble in done.troubles:
        command.say(trouble)
