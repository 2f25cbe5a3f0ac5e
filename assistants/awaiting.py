"""What waits for one person: what they may decide on, and have not yet."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, OuterRef

from assistants import memory, outbox, places
from assistants.models import MemorySnapshot, OutboxItem
from runs import clock, four_eyes
from runs.models import Decision
from runs.sight import seen_by
from runs.verdicts import Person

LOOKED_AT = 100  # items whose authors are asked for; a count above that is no help to anybody


def open_items(user: Any) -> Any:
    """Undecided items that this person may see."""
    found = OutboxItem.objects.filter(seen_by(user, "assistant"), state=OutboxItem.State.PENDING)
    return found.exclude(expires_at__lte=clock.now())


def open_memories(user: Any) -> Any:
    """Snapshots that wait for review, which this person may see; the oldest first."""
    held = MemorySnapshot.objects.filter(review=MemorySnapshot.Review.WAITING)
    ruled = OutboxItem.objects.filter(assistant=OuterRef("assistant"), exclude_author=True)
    found = held.filter(seen_by(user, "assistant")).select_related("assistant")
    return found.annotate(is_ruled=Exists(ruled)).order_by("taken_at", "pk")


def items_for(user: Any, *, is_strict: bool | None = None, found: Any = None) -> frozenset[int]:
    """Those of them whose approval by this person would count, and was not given yet.

    Args:
        is_strict: whether four eyes are on; None: look.
        found: rows of `open_items`; None: all.
    """
    if not user.has_perm("assistants.decide_outboxitem"):
        return frozenset()
    person = Person(user=user, via="web")
    given = Decision.objects.filter(actor=user, subject__startswith="outbox:")
    decided = set(given.values_list("subject", "digest"))
    strict = four_eyes.is_on() if is_strict is None else is_strict
    rows = open_items(user).select_related("wakeup", "assistant").defer("body")
    mine = []
    for item in rows.order_by("created_at", "pk")[:LOOKED_AT] if found is None else found:
        if (outbox.subject_of(item), item.sha256) in decided and not _counts_no_more(item, user):
            continue
        if (strict or item.exclude_author) and not outbox.may_approve(item, person):
            continue
        mine.append(item.pk)
    return frozenset(mine)


def has_approved(item: OutboxItem, user: Any) -> bool:
    """Whether this person approved exactly this, for where it goes now."""
    if item.approvals <= 1:  # one approval decided it
        return False
    subject, given = outbox.subject_of(item), Decision.Verdict.APPROVE
    theirs = Decision.objects.filter(subject=subject, actor=user, digest=item.sha256)
    rows = list(theirs.filter(verdict=given)) if user.pk is not None else []
    return bool(rows and places.counting(rows, places.digest_of_places(item)))


def _counts_no_more(item: OutboxItem, user: Any) -> bool:
    """Whether where an item goes was changed since this person approved it."""
    theirs = Decision.objects.filter(
        subject=outbox.subject_of(item), actor=user, digest=item.sha256
    )
    return not places.counting(theirs, places.digest_of_places(item))


def memories_for(user: Any, *, is_strict: bool | None = None, found: Any = None) -> frozenset[int]:
    """Those of the memories that wait which this person may accept.

    Args:
        is_strict: whether four eyes are on; None: look.
        found: rows of `open_memories`; None: all.
    """
    if not user.has_perm("assistants.review_memory"):
        return frozenset()
    strict = four_eyes.is_on() if is_strict is None else is_strict
    person = Person(user=user, via="web")
    return frozenset(
        each.pk
        for each in (open_memories(user)[:LOOKED_AT] if found is None else found)
        if not (strict or each.is_ruled or each.assistant.config.get("exclude_author"))
        or memory.may_accept(each, person)
    )


def count_for(user: Any) -> int:
    """How many things wait for a decision that this person may take."""
    is_strict = four_eyes.is_on()
    items = items_for(user, is_strict=is_strict)
    return len(items) + len(memories_for(user, is_strict=is_strict))
