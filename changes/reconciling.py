"""Ending what dead processes left of changes: called wherever lost runs are ended.

A change whose run still counts as live is left for the next look: its container may be there. The
clone goes with the change, so that no orphan stays.
"""

from __future__ import annotations

import datetime as dt
import logging
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import Q

from changes import budgets, gate, handover, place, pull_requests, testing_later
from changes.git import GitError
from changes.models import Batch, Change, PullRequest
from runs import audit, clock
from runs.lease import Watcher, owner_is
from runs.models import Run
from runs.reconcile import Reconciled
from runs.refusal import HostRefusal, Refusal

log = logging.getLogger(__name__)
LOST = "the process that made it is gone"
NOBODY_S = (
    600.0  # a change that was written down and given to nobody for so long is not going to be
)
LANDS_AGAIN_S = 20.0  # after a decision; who decided lands it themselves


def look(sender: Any, watcher: Watcher | None, done: Reconciled, **_: Any) -> None:
    """What `runs.signals.looked` calls. It never raises: every command begins with it."""
    for change in Change.objects.filter(state=Change.State.RUNNING).select_related("run"):
        lost = watcher.is_lost(change) if watcher else owner_is(change.lease_owner) == "gone"
        if lost:
            _tried(done, f"{change} is lost and could not be ended", end, change)
    for change in _abandoned():
        _tried(done, f"{change} could not be ended", Change.objects.drop, change.pk, LOST)
    _tried(done, "tests that nobody runs could not be ended", testing_later.look)
    if watcher is not None:
        _tried(done, "changes that wait could not be rung for", handover.ring_again)
        _land(done)
        _propose(done)


def end(change: Change) -> bool:
    """End one whose process is gone; False when that is not for us to say, or was done already."""
    if change.run is not None and change.run.state != Run.State.ENDED:
        return False
    why = LOST if change.run is None else f"{LOST} (run {change.run.uid})"
    # first: who is killed in between leaves it to the next look
    place.remove_whole(place.clones() / change.uid)
    with transaction.atomic():
        if not Change.objects.end_lost(change, why):
            return False
        budgets.settle(change, change.run)
        audit.record_policy("change.lost", f"change:{change.uid}", why=why)
    return True


def _abandoned() -> list[Change]:
    """Queued ones that nobody is going to begin: who wrote them down is gone.

    What of a worker's batch waits for its turn is the worker's.
    """
    before = clock.now() - dt.timedelta(seconds=NOBODY_S)
    queued = Change.objects.filter(state=Change.State.QUEUED, rung_at=None)
    owners = Batch.objects.exclude(owner="").values_list("uid", "owner")
    gone = [uid for uid, owner in owners if owner_is(owner) == "gone"]
    return list(queued.filter(Q(batch__in=gone) | Q(batch="", state_at__lt=before)))


def _land(done: Reconciled) -> None:
    """Finish what was decided and did not land: its process died, or git could not then."""
    before = clock.now() - dt.timedelta(seconds=LANDS_AGAIN_S)
    for change in Change.objects.filter(state=Change.State.LANDING, state_at__lt=before):
        try:
            gate.land(change.uid)
        except (HostRefusal, GitError) as exc:
            done.troubles.append(f"{change} is accepted and cannot land now: {exc}")
        except Refusal as exc:
            done.troubles.append(f"{change} could not land and is in review again: {exc}")


def _propose(done: Reconciled) -> None:
    """Go on with a pull request whose process died. What was refused waits for a person."""
    before = clock.now() - dt.timedelta(seconds=LANDS_AGAIN_S)
    open_ = PullRequest.objects.exclude(state=PullRequest.State.OPENED)
    for row in open_.filter(trouble="", state_at__lt=before).select_related("change__repository"):
        try:
            pull_requests.publish(row.change)
        except (Refusal, GitError) as exc:
            done.troubles.append(f"{row.change} is accepted, its pull request is not made: {exc}")


def _tried(done: Reconciled, what: str, act: Any, *words: Any) -> None:
    try:
        act(*words)
    except (DatabaseError, OSError, Refusal, GitError) as exc:
        log.warning("%s: %s", what, exc)
        done.troubles.append(f"{what}: {exc}")
