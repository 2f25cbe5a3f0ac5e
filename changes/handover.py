"""Leaving an attempt to a worker, or to a process of its own, instead of making it here."""

from __future__ import annotations

import os
import subprocess

from django.db import transaction

from changes import base, batching
from changes.asking import planned
from changes.making import found
from changes.models import Batch, Change
from runs import handover, queue
from runs.models import Run
from runs.order import restored
from runs.own_program import own_program
from runs.refusal import Refusal
from runs.verdicts import Person, check_reason

MAKE = "changes.tasks.make"
AROUND_RUN_S = 900  # for the clone before the run, and for reading it afterwards


def give(uid: str) -> bool:
    """Have a running worker make a queued change, at once or when it has room.

    False: no worker is up that would make it as this process would. It is queued still: make it
    here, or `beside`.
    """
    change = found(uid)
    if not worker_takes(change):
        return False
    wait_for_worker(uid)
    return True


def wait_for_worker(uid: str) -> None:
    """Leave a queued change to the worker, whether one is up or not: it is made when one is."""
    change = found(uid)
    with transaction.atomic():
        if change.batch and not batching.has_room(change):
            return  # rung for when another one has ended
        if Change.objects.ring(change.pk):
            _ring(change)


def give_revision(uid: str, person: Person, task: str) -> bool:
    """Have a running worker make another attempt of a reviewed change. False: as `give`.

    Raises Refusal: the change is not in review, one is asked for already, or the task is empty.
    """
    if not task.strip():
        raise Refusal("a revision needs a --task: what is to be different")
    check_reason(task)
    change = found(uid)
    if not worker_takes(change):
        return False
    with transaction.atomic():
        account = "" if person.user is not None else person.account
        if not Change.objects.want(change.pk, task, person.user, account):
            change = found(uid)
            if change.wanted_task:
                raise Refusal(f"{change} is being revised already: {change.wanted_task[:200]}")
            raise Refusal(f"{change} is {change.state}: only what is in review can be revised")
        Change.objects.ring(change.pk)
        _ring(change)
    return True


def beside(uid: str) -> subprocess.Popen[bytes]:
    """Make a queued change in a process of its own, which outlives this one.

    What it says is in `executor.log` beside what is kept of the change.
    """
    change = found(uid)
    with (base.directory_of(change.uid) / "executor.log").open("ab") as log:
        return subprocess.Popen(
            own_program("attempt", change.uid),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
            env=os.environ,
        )


def cancel(uid: str, by: str) -> str:
    """End an attempt that waits or is being made, whoever makes it.

    Returns "cancelled" (it had not begun), "asked" (its process ends it now) or "" (nothing to
    end). An attempt that was there before is reviewed again.
    """
    change = found(uid)
    if Change.objects.drop(change.pk, f"cancelled by {by} before it began"):
        return "cancelled"
    with transaction.atomic():
        going = Change.objects.filter(pk=change.pk, state=Change.State.RUNNING)
        if not going.update(stop_by=by[:300]):
            return ""
        run = Run.objects.live().filter(changes=change.pk).first()
    if run is not None:
        Run.objects.request_stop(run.uid, by)
    return "asked"


def ring_again() -> list[str]:
    """Ring for what nobody came for, and for the next ones of each batch; their uids."""
    rung = []
    unheard = list(Change.objects.unheard().order_by("created_at", "pk"))
    hanging = queue.hanging(queue.RUNS, MAKE) if unheard else set()
    for change in unheard:
        if Change.objects.ring(change.pk) and change.pk not in hanging:
            _ring(change)
            rung.append(change.uid)
    going = Change.objects.filter(state=Change.State.QUEUED, rung_at=None).exclude(batch="")
    for uid in set(going.values_list("batch", flat=True)):
        rung += ring_next(uid)
    return rung


def ring_next(batch: str) -> list[str]:
    """Ring for as many changes of a worker's batch as it has room for; their uids."""
    rung: list[str] = []
    if not Batch.objects.filter(uid=batch, owner="").exists():
        return rung  # the process that owns it makes them itself
    while (change := batching.next_of(batch)) is not None and Change.objects.ring(change.pk):
        _ring(change)
        rung.append(change.uid)
    return rung


def worker_takes(change: Change) -> bool:
    """Whether a worker is up that would make it as this process would."""
    return handover.worker_takes(planned(change.task, restored(change.order, change.task)))


def _ring(change: Change) -> None:
    limit_s = int(change.order.get("timeout_s") or 900) + AROUND_RUN_S
    queue.ring(MAKE, change.pk, cluster=queue.RUNS, limit_s=limit_s)
