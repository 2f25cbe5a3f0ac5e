"""Which memory counts as looked at by a person, and which one a wakeup may start from."""

from __future__ import annotations

import datetime as dt

from assistants.models import Assistant, MemorySnapshot

_Moment, _Review = MemorySnapshot.Moment, MemorySnapshot.Review


def newest(assistant: Assistant) -> MemorySnapshot | None:
    """The last one taken. Rows are counted, since the wall clock may step back."""
    return MemorySnapshot.objects.filter(assistant=assistant).order_by("-pk").first()


def start_from(assistant: Assistant) -> MemorySnapshot | None:
    """What the next wakeup of a reviewed assistant starts from: trusted last; None: nothing yet.

    An accepted snapshot counts from when it was accepted, so that accepting an older one goes
    back to it.
    """
    rows = list(MemorySnapshot.objects.trusted().filter(assistant=assistant))
    before = {each.wakeup_id: each for each in rows if each.moment == _Moment.BEFORE}

    def since(snapshot: MemorySnapshot) -> tuple[dt.datetime, int]:
        if snapshot.reviewed_at is not None:
            return snapshot.reviewed_at, snapshot.pk
        earlier = before.get(snapshot.wakeup_id) if snapshot.wakeup_id else None
        # a wakeup that changed nothing is no newer than what it started from: meanwhile, somebody
        # may have accepted another one
        is_same = earlier is not None and earlier.digest == snapshot.digest
        return (earlier.taken_at if earlier and is_same else snapshot.taken_at), snapshot.pk

    return max(rows, key=since, default=None)


def is_reviewed(assistant: Assistant, digest: str) -> bool:
    """Whether a memory is one that a person accepted, or what was there before any wakeup."""
    rows = MemorySnapshot.objects.filter(assistant=assistant)
    if rows.filter(review=_Review.ACCEPTED, digest=digest).exists():
        return True
    first = rows.order_by("pk").first()
    return first is not None and first.moment != _Moment.AFTER and first.digest == digest


def is_unreviewed(assistant: Assistant) -> bool:
    """Whether its newest wakeup started from a memory that no person accepted."""
    before = MemorySnapshot.objects.filter(assistant=assistant, moment=_Moment.BEFORE)
    digest = before.order_by("-pk").values_list("digest", flat=True).first()
    return digest is not None and not is_reviewed(assistant, digest)
