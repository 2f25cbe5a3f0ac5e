"""How long snapshots are kept, and the end of contents that none of them names."""

from __future__ import annotations

import logging
import time

from django.db.models import Q

from assistants.memory import trust
from assistants.memory.manifest import Damaged
from assistants.memory.store import Store
from assistants.models import Assistant, MemorySnapshot

KEEP = 50
SLACK = 20  # so many more may gather before they go together: looking through the lists is work
SETTLED_S = 3600.0  # a list may be older than its row, which is still to be committed

_log = logging.getLogger(__name__)


def apply(assistant: Assistant, store: Store, *, keep: int = KEEP, slack: int = SLACK) -> int:
    """Remove what is old, and what nothing names; returns how many snapshots went.

    The newest `keep` stay, every accepted one, every one that waits for review, what the next
    wakeup starts from, and the first: what was there before any wakeup. The store must be locked.
    """
    rows = MemorySnapshot.objects.filter(assistant=assistant)
    pks = list(rows.order_by("-pk").values_list("pk", flat=True))
    if len(pks) <= keep + slack:
        return 0
    staying = {*pks[:keep], pks[-1], *_start(assistant)}
    undecided = Q(review__in=[MemorySnapshot.Review.ACCEPTED, MemorySnapshot.Review.WAITING])
    removed, _ = rows.exclude(undecided).exclude(pk__in=staying).delete()
    if removed:
        collect(assistant, store)
    return removed


def collect(assistant: Assistant, store: Store) -> int:
    """Remove contents that no snapshot names; returns how many. The store must be locked."""
    rows = MemorySnapshot.objects.filter(assistant=assistant)
    digests = set(rows.values_list("digest", flat=True))
    now = time.time()
    try:
        return store.collect(
            lambda digest, saved_at: digest in digests or 0 <= now - saved_at < SETTLED_S
        )
    except Damaged as exc:  # what a damaged list named cannot be known: nothing goes
        _log.warning("memory of %s: nothing is removed: %s", assistant.name, exc)
        return 0


def _start(assistant: Assistant) -> list[int]:
    start = trust.start_from(assistant)
    return [start.pk] if start is not None else []
