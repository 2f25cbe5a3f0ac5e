"""`tick` and `serve`: the same look at what is due, with wakeups as processes of this one."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from django.db import DatabaseError, close_old_connections, connections
from django.db.models import Min

from assistants import collaborators, ticking
from assistants.models import Schedule, Wakeup
from assistants.processes import Processes
from assistants.ticking import Ticked
from runs import clock
from runs.interrupts import is_ignored
from runs.lease import Watcher
from runs.refusal import Refusal

SHORTEST_S = 1.0
STEERED_S = 0.25  # where tests steer the clock, no real pause may be long
DELIVERY_S = 30.0  # so long a delivery under way is waited for when everything ends


class Foreground:
    """Args:
    on_end: told of each wakeup that ended, with its row.
    on_trouble: told of what went wrong, in a sentence.

    Use it as a context manager in the main thread: it takes the signals meanwhile.
    """

    def __init__(self, on_end: Callable[[Wakeup], None], on_trouble: Callable[[str], None]) -> None:
        self.stopped_by: signal.Signals | None = None
        self._on_end, self._on_trouble = on_end, on_trouble
        self._processes = Processes()
        self._watcher = Watcher()
        self._news = threading.Event()
        self._before: dict[int, Any] = {}
        self._delivering: threading.Thread | None = None
        self._signals = 0

    def __enter__(self) -> Foreground:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if not is_ignored(number):
                self._before[number] = signal.signal(number, self._stop)
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, self._child)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def is_delivering(self) -> bool:
        """Whether a receiver still keeps a thread of this process waiting."""
        return self._delivering is not None and self._delivering.is_alive()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        self.stopped_by = signal.Signals(number)
        self._processes.tell(self.stopped_by)
        self._news.set()

    def _child(self, number: int, frame: FrameType | None) -> None:
        self._news.set()

    # -- one pass -------------------------------------------------------------------------------
    def once(self) -> None:
        """Look, start what is due, and stay until it has ended."""
        self._look()
        self._stay()
        self._deliver_here()

    def just(self, wakeup: Wakeup) -> None:
        """Start this one alone and stay until it has ended."""
        if Wakeup.objects.ring(wakeup.pk):
            self._processes.start(wakeup)
        self._stay()
        self._deliver_here()

    def _stay(self) -> None:
        while len(self._processes):
            self._wait(STEERED_S if _steered() else 5.0)
            if self._reaped() and self.stopped_by is None:
                ticking.ring_waiting(Ticked(), self._processes.start)

    # -- on and on --------------------------------------------------------------------------------
    def on_and_on(self, interval_s: float) -> None:
        """Look again and again until a signal comes; then stay until what was started has ended."""
        while self.stopped_by is None:
            try:
                self._look()
                self._deliver_beside()
                pause = self._pause(interval_s)
            except (DatabaseError, OSError, Refusal) as exc:
                self._on_trouble(f"this look failed, the next comes in {interval_s:g} s: {exc}")
                pause = interval_s
            self._sleep(pause)
        while len(self._processes):
            self._wait(1.0)
            self._reaped()
        self._end_delivering()

    def _look(self) -> None:
        close_old_connections()  # a server that was started again wants a new one
        done = ticking.tick(self._processes.start, watcher=self._watcher)
        for sentence in done.troubles:
            self._on_trouble(sentence)
        for wakeup in Wakeup.objects.select_related("assistant").filter(pk__in=done.recovered):
            self._on_end(wakeup)

    def _pause(self, interval_s: float) -> float:
        """Seconds until something is due, at least one, at most the interval."""
        awake = Schedule.objects.filter(assistant__disabled_at=None, assistant__removed_at=None)
        waiting = Wakeup.objects.filter(
            state=Wakeup.State.WAITING, not_before__gt=clock.now(), assistant__disabled_at=None
        )
        nearest = [
            awake.aggregate(at=Min("next_at"))["at"],
            waiting.aggregate(at=Min("not_before"))["at"],
        ]
        now = clock.now()
        left: list[float] = [(at - now).total_seconds() for at in nearest if at is not None]
        return max(min([interval_s, *left]), min(SHORTEST_S, interval_s))

    def _sleep(self, seconds: float) -> None:
        """Until then, a signal, or the end of a wakeup."""
        end = clock.monotonic() + seconds
        while self.stopped_by is None and (left := end - clock.monotonic()) > 0:
            self._wait(min(left, STEERED_S) if _steered() else left)
            if self._reaped():
                return

    def _wait(self, seconds: float) -> None:
        self._news.wait(seconds)
        self._news.clear()

    def _reaped(self) -> bool:
        ended = self._processes.ended()
        for wakeup in Wakeup.objects.select_related("assistant").filter(pk__in=ended):
            if wakeup.state == Wakeup.State.WAITING and ended[wakeup.pk] and not self.stopped_by:
                self._on_trouble(
                    f"{wakeup.assistant.name}: its process ended with {ended[wakeup.pk]} before it "
                    "began; a later look tries again"
                )
            self._on_end(wakeup)
        return bool(ended)

    # -- deliveries -----------------------------------------------------------------------------
    def _deliver_here(self) -> None:
        if self.stopped_by is None:
            collaborators.deliver_due()

    def _deliver_beside(self) -> None:
        """In a thread: a slow receiver delays no wakeup."""
        if self.is_delivering:
            return
        self._delivering = threading.Thread(target=self._delivered, name="deliveries", daemon=True)
        self._delivering.start()

    def _end_delivering(self) -> None:
        """Wait for the delivery under way, but not for a receiver that hangs."""
        end = clock.monotonic() + DELIVERY_S
        if self.is_delivering:
            self._on_trouble("waiting for a delivery under way; a second signal does not")
        while self.is_delivering and self._signals < 2 and clock.monotonic() < end:
            self._wait(STEERED_S)
        if self.is_delivering:
            self._on_trouble("a delivery is left in the middle: it will be told as unknown")

    def _delivered(self) -> None:
        try:
            collaborators.deliver_due()
        except (DatabaseError, OSError) as exc:
            self._on_trouble(f"deliveries failed: {exc}")
        finally:
            connections.close_all()


def _steered() -> bool:
    return bool(os.environ.get(clock.STEER))
