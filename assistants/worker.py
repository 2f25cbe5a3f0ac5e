"""The life of a worker: two clusters and a clock, and whatever else lives beside them."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Protocol

from django.conf import settings
from django.db import DatabaseError

from assistants import ticking, working
from runs import handover, pulse, queue
from runs.interrupts import is_ignored
from runs.locks import held_if_free
from runs.refusal import Refusal
from runs.worker import Clusters

LOOK_S = 1.0
UP = "the worker is up; SIGTERM or Ctrl-C stops it"


class Companion(Protocol):
    """A process that lives and ends with the clusters."""

    def mend(self) -> bool:
        """Start it again if it died. False when it cannot be kept alive."""

    def stopping(self) -> None:
        """Have it say that everything ends soon, while it still answers."""

    def stop(self) -> None:
        """Ask it to end."""

    def end(self) -> None:
        """Wait for that, and end what is left of it."""


@contextlib.contextmanager
def the_only_one() -> Iterator[None]:
    """Be this installation's worker for the block. Raises Refusal when there is one."""
    with held_if_free(handover.LOCK) as free:
        if not free:
            raise Refusal("another worker of this installation runs already")
        yield


class Signals:
    """How often this process was told to stop, while it is entered."""

    def __init__(self) -> None:
        self.count = 0
        self._news = threading.Event()

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        numbers = [n for n in (signal.SIGTERM, signal.SIGINT) if not is_ignored(n)]
        before = {n: signal.signal(n, self._told) for n in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def wait(self, seconds: float) -> None:
        self._news.wait(seconds)

    def _told(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self._news.set()


class Worker:
    """Args:
    say: is told in a sentence what happens.
    beside: is kept alive with the clusters, and asked to end when they have.
    """

    def __init__(self, say: Callable[[str], None], beside: Companion | None = None) -> None:
        self._say, self._beside = say, beside
        self._signals = Signals()

    def live(self, up: str = UP) -> int:
        """Until a signal; 1 when something could not be kept alive. `up` is said at the start."""
        with self._signals.heard():
            queue.keep_clock(working.TICK)
            handover.announce()
            clusters = Clusters(_busy, self._say)
            try:
                mended = self._watch(clusters, up)
            finally:
                if self._beside is not None:
                    self._beside.stopping()
                self._drain(clusters)
                if self._beside is not None:
                    # last: a page that shows what is waited for must be answered until then
                    self._beside.stop()
                    self._beside.end()
                self._recover_what_was_cut()
            return 0 if mended else 1

    def _drain(self, clusters: Clusters) -> None:
        seconds = settings.SANDUK_DRAIN_SECONDS
        if many := len(_busy()):
            under_way = "1 that is under way" if many == 1 else f"{many} that are under way"
            self._say(
                f"stopping: nothing new is begun, and {under_way} may take {seconds} s to end; "
                "a second signal does not wait"
            )
        clusters.drain(seconds, lambda: self._signals.count > 1)

    def _watch(self, clusters: Clusters, up: str) -> bool:
        """Until a signal. False when a cluster cannot be kept alive."""
        watchdog = working.Watchdog()
        self._say(up)
        while not self._signals.count:
            pulse.stamp("worker")
            if not clusters.mend():
                return False
            if self._beside is not None and not self._beside.mend():
                return False
            working.nudge()
            try:
                hanging = watchdog.hanging()
            except DatabaseError as exc:
                self._say(f"the database does not answer: {exc}")
                hanging = {}
            for name, why in hanging.items():
                clusters.restart(name, why)
            self._signals.wait(LOOK_S)
        return True

    def _recover_what_was_cut(self) -> None:
        """End what did not end in time, so that the next start finds it waiting."""
        try:
            done = ticking.end_lost()
        except DatabaseError as exc:
            self._say(f"what was under way is ended by the next start: {exc}")
            return
        for trouble in done.troubles:
            self._say(trouble)


def _busy() -> list[int]:
    try:
        return working.busy_pids()
    except DatabaseError:
        return []
