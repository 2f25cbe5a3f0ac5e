"""Which memory counts as looked at by a person, and which one a wakeup may start from."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from assistants.models import Assistant, MemorySnapshot

_Moment, _Review = MemorySnapshot.Moment, MemorySnapshot.Review
_TRUSTED = (_Review.NOT_ASKED, _Review.ACCEPTED)


def newest(assistant: Assistant) -> MemorySnapshot | None:
    """The last one taken. Rows are counted, since the wall clock may step back."""
    return MemorySnapshot.objects.filter(assistant=assistant).order_by("-pk").first()


def start_from(assistant: Assistant) -> MemorySnapshot | None:
    """What the next wakeup of a reviewed assistant starts from: trusted last; None: nothing yet.

    An accepted snapshot counts from when it was accepted, so that accepting an older one goes
    back to it.
    """
    return _last_trusted(list(MemorySnapshot.objects.trusted().filter(assistant=assistant)))


def in_force(assistant: Assistant) -> MemorySnapshot | None:
    """The memory from which the next wakeup starts, where that is one that a person accepted, or
    that was left without review; None where it is what was there before any wakeup.

    Where memory was copied, the newest copy counts.
    """
    return in_force_among(MemorySnapshot.objects.filter(assistant=assistant))


def in_force_among(rows: Iterable[MemorySnapshot]) -> MemorySnapshot | None:
    """`in_force`, when all rows of an assistant were read already."""
    return _origin([each for each in rows if each.review in _TRUSTED])


def newer_in_force(snapshot: MemorySnapshot) -> MemorySnapshot | None:
    """The memory behind which accepting this one would go back; None: behind none."""
    now = in_force(snapshot.assistant)
    return now if now is not None and is_behind(snapshot, now) else None


def is_behind(snapshot: MemorySnapshot, now: MemorySnapshot) -> bool:
    """Whether a memory was taken before the one in force, and says something else."""
    return snapshot.pk < now.pk and snapshot.digest != now.digest


def is_superseded(snapshot: MemorySnapshot, now: MemorySnapshot | None) -> bool:
    """Whether one still waits for review although a newer one is in force."""
    is_open = snapshot.review == _Review.WAITING
    return is_open and now is not None and is_behind(snapshot, now)


def _last_trusted(rows: list[MemorySnapshot]) -> MemorySnapshot | None:
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


def _origin(rows: list[MemorySnapshot]) -> MemorySnapshot | None:
    """The newest row that made the memory in force what it is, and was no look at it again."""
    start = _last_trusted(rows)
    if start is None:
        return None
    before = {each.wakeup_id for each in rows if each.moment == _Moment.BEFORE
              and each.digest == start.digest}  # fmt: skip
    made = [
        each
        for each in rows
        if each.digest == start.digest
        and each.moment != _Moment.BEFORE
        and not (each.moment == _Moment.AFTER and each.wakeup_id in before)
    ]
    return max(made, key=lambda each: each.pk, default=None)


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
