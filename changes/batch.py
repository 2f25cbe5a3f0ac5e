"""Several changes of one repository at once: so many at a time, and one budget for all."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from django.db import transaction

from changes import base, handover
from changes.asking import Options, ask_each
from changes.making import found
from changes.models import Batch, Change, Repository
from changes.models.change import new_uid
from runs import clock, lease
from runs.refusal import Refusal
from runs.verdicts import Person

TASKS_MAX = 500
PARALLEL_MAX = 64
LOOK_S = 2.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def ask_all(
    path: str,
    tasks: Sequence[str],
    *,
    options: Options,
    person: Person,
    max_parallel: int = 2,
    total_budget_usd: float | None = None,
) -> Batch:
    """Write every task down as a queued change, or none of them.

    Args:
        max_parallel: how many are made at a time.
        total_budget_usd: what all of them together may spend; each run's part is set aside before
            it starts, and what it leaves goes to the others.
    Raises:
        Refusal: as `changes.asking.ask`, or there is no task, or one that cannot be meant.
    """
    _check(tasks, max_parallel, total_budget_usd)
    uid = new_uid()
    with transaction.atomic():
        made = ask_each(path, list(tasks), options=options, person=person, batch=uid)
        try:
            return _row(uid, made[0].repository, person, max_parallel, total_budget_usd)
        except BaseException:
            for change in made:
                base.forget(change.uid)
            raise


def changes_of(batch: Batch) -> list[Change]:
    """In the order they were asked for."""
    ours = Change.objects.filter(batch=batch.uid).select_related("repository", "attempt", "run")
    return list(ours.order_by("pk"))


def give(batch: Batch) -> bool:
    """Leave the whole batch to a running worker. False: there is none that would make it so."""
    waiting = [each for each in changes_of(batch) if each.state == Change.State.QUEUED]
    if not waiting or not handover.worker_takes(waiting[0]):
        return False
    handover.ring_next(batch.uid)
    return True


def run(batch: Batch, on_end: Callable[[Change], None] = lambda change: None) -> list[Change]:
    """Make all of them from this process, each in one of its own; back when the last has ended.

    Ctrl-C, SIGTERM or SIGHUP drops those that wait, ends those under way, and waits for these; a
    second one hurries them.

    Args:
        on_end: is told of each as it ends.
    """
    Batch.objects.filter(pk=batch.pk).update(owner=lease.owner())
    with _Making(batch, on_end) as making:
        making.to_the_end()
    return changes_of(batch)


def cancel(batch: Batch, by: str) -> None:
    """Drop what waits, end what is under way."""
    cancelled = {"cancelled_at": clock.now(), "cancelled_by": by[:300]}
    Batch.objects.filter(pk=batch.pk, cancelled_at=None).update(**cancelled)
    for change in changes_of(batch):
        if change.state in (Change.State.QUEUED, Change.State.RUNNING):
            handover.cancel(change.uid, by)


class _Making:
    """The processes that make a batch, and this process's signals meanwhile."""

    def __init__(self, batch: Batch, on_end: Callable[[Change], None]) -> None:
        self._batch, self._on_end = batch, on_end
        self._waiting = [c.uid for c in changes_of(batch) if c.state == Change.State.QUEUED]
        self._going: dict[str, subprocess.Popen[bytes]] = {}
        self._before: dict[int, Any] = {}
        self._signals: list[int] = []
        self._told = 0
        self._news = threading.Event()

    def __enter__(self) -> _Making:
        for number in _SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._caught)
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, self._child)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def to_the_end(self) -> None:
        while self._going or self._waiting:
            self._pass_on()
            self._start()
            self._news.wait(LOOK_S)
            self._news.clear()
            self._reap()

    def _caught(self, number: int, frame: FrameType | None) -> None:
        self._signals.append(number)
        self._news.set()

    def _child(self, number: int, frame: FrameType | None) -> None:
        self._news.set()

    def _pass_on(self) -> None:
        """Tell those under way of every signal: the terminal's Ctrl-C does not reach them."""
        while self._told < len(self._signals):
            number = self._signals[self._told]
            self._told += 1
            for process in self._going.values():
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(number)
        if self._signals and self._waiting:
            for uid in self._waiting:
                Change.objects.drop(found(uid).pk, "cancelled before it began")
                self._on_end(found(uid))
            self._waiting = []

    def _start(self) -> None:
        while self._waiting and len(self._going) < self._batch.max_parallel:
            uid = self._waiting.pop(0)
            self._going[uid] = handover.beside(uid)

    def _reap(self) -> None:
        ended = [uid for uid, process in self._going.items() if process.poll() is not None]
        for uid in ended:
            del self._going[uid]
            change = found(uid)
            if change.state == Change.State.QUEUED:
                # it could not even begin: what it said is in its log
                why = "cancelled" if self._signals else "its process ended"
                Change.objects.drop(change.pk, f"{why} before it began")
                change = found(uid)
            self._on_end(change)


def _check(tasks: Sequence[str], max_parallel: int, total_budget_usd: float | None) -> None:
    if not tasks:
        raise Refusal("there is no task: give --task, or --tasks-file with one in it")
    if len(tasks) > TASKS_MAX:
        raise Refusal(f"there are {len(tasks):,} tasks; one batch takes at most {TASKS_MAX}")
    if not 1 <= max_parallel <= PARALLEL_MAX:
        raise Refusal(f"--max-parallel takes a number from 1 to {PARALLEL_MAX}")
    if total_budget_usd is not None and not 0 < total_budget_usd < 1e9:
        raise Refusal("--total-budget takes an amount above 0, in dollars")


def _row(
    uid: str,
    repository: Repository,
    person: Person,
    max_parallel: int,
    total_budget_usd: float | None,
) -> Batch:
    made: Batch = Batch.objects.create(
        uid=uid,
        repository=repository,
        max_parallel=max_parallel,
        total_budget_usd=total_budget_usd,
        requested_by=person.user,
        requested_as="" if person.user is not None else person.account,
    )
    return made
