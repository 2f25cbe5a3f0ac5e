"""Claiming the change of a batch: no more of them are made at a time than was asked for."""

from __future__ import annotations

from django.conf import settings
from django.db import transaction

from changes.models import Batch, Change


def claim(change: Change, owner: str) -> bool:
    """Begin the first attempt of a queued change. False: it is not ours, or waits for its turn."""
    with transaction.atomic():
        if not has_room(change):
            return False
        return Change.objects.claim(change.pk, owner, settings.SANDUK_LEASE_SECONDS)


def has_room(change: Change) -> bool:
    """Whether its batch may have one more under way; locks the batch, in a transaction."""
    batch = Batch.objects.select_for_update().filter(uid=change.batch).first()
    if batch is None:
        return True
    if batch.cancelled_at is not None:
        return False
    going = Change.objects.filter(batch=batch.uid, state=Change.State.RUNNING).count()
    return going < batch.max_parallel


def next_of(uid: str) -> Change | None:
    """The oldest change of a batch that waits and was not given to anybody, if there is room."""
    batch = Batch.objects.filter(uid=uid, cancelled_at=None).first()
    if batch is None:
        return None
    ours = Change.objects.filter(batch=uid)
    taken = ours.filter(state=Change.State.RUNNING) | ours.filter(
        state=Change.State.QUEUED, rung_at__isnull=False
    )
    if taken.count() >= batch.max_parallel:
        return None
    waiting = ours.filter(state=Change.State.QUEUED, rung_at=None)
    return waiting.order_by("created_at", "pk").first()
