"""What a snapshot changed, seen from the one it is a change of."""

from __future__ import annotations

from collections.abc import Iterable

from assistants.memory.capture import Captured
from assistants.memory.differences import Difference, compare
from assistants.memory.snapshots import store_of
from assistants.models import Assistant, MemorySnapshot


def earlier(snapshot: MemorySnapshot) -> MemorySnapshot | None:
    """What a snapshot is a change of: that before the same wakeup, else the one before it."""
    rows = MemorySnapshot.objects.filter(assistant=snapshot.assistant, pk__lt=snapshot.pk)
    if snapshot.moment == MemorySnapshot.Moment.AFTER and snapshot.wakeup_id:
        same = rows.filter(wakeup=snapshot.wakeup_id, moment=MemorySnapshot.Moment.BEFORE).first()
        if same is not None:
            return same
    return rows.order_by("-pk").first()


def earlier_among(
    snapshot: MemorySnapshot, rows: Iterable[MemorySnapshot]
) -> MemorySnapshot | None:
    """`earlier`, when all rows of its assistant were read already."""
    before = [each for each in rows if each.pk < snapshot.pk]
    if snapshot.moment == MemorySnapshot.Moment.AFTER and snapshot.wakeup_id:
        for each in before:
            if (each.wakeup_id, each.moment) == (snapshot.wakeup_id, MemorySnapshot.Moment.BEFORE):
                return each
    return max(before, key=lambda each: each.pk, default=None)


def compared(
    assistant: Assistant, old: MemorySnapshot | None, new: MemorySnapshot | Captured
) -> list[Difference]:
    """Every difference of two memories; None is an empty one. Raises manifest.Damaged."""
    store = store_of(assistant)
    before = store.load(old.digest) if old is not None else Captured().manifest
    after = new.manifest if isinstance(new, Captured) else store.load(new.digest)
    return compare(before, after)
