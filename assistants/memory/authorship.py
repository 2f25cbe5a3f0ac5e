"""Who is behind a memory, and who may therefore not be the one that accepts it."""

from __future__ import annotations

from assistants import authors
from assistants.memory.snapshots import workspace_of
from assistants.models import MemorySnapshot, OutboxItem, Wakeup
from runs import four_eyes
from runs.approval import ApprovalPolicy
from runs.models import Run
from runs.verdicts import Person

_Moment = MemorySnapshot.Moment


def authors_of(snapshot: MemorySnapshot) -> frozenset[int]:
    """The site users who asked for the wakeups, or fed them, that made a memory what it is.

    A copy is whose the original is: content decides. What was found by hand goes on from the
    memory before it, with what runs in the workspace may have written since.
    """
    rows = MemorySnapshot.objects.filter(assistant=snapshot.assistant)
    found: set[int] = set()
    current: MemorySnapshot | None = snapshot
    while current is not None:
        made = _that_made(current)
        for wakeup in made:
            found |= authors.of_wakeup(wakeup)
        first = rows.filter(digest=current.digest, pk__lte=current.pk).order_by("pk").first()
        if made or first is None or first.moment != _Moment.BY_HAND:
            break
        current = rows.filter(pk__lt=first.pk).order_by("-pk").first()
        found |= _of_runs(first, current)
    return frozenset(found)


def excludes_author(snapshot: MemorySnapshot) -> bool:
    """Whether who asked for a memory or fed it cannot accept it: as with that wakeup's item."""
    if four_eyes.is_on() or snapshot.assistant.config.get("exclude_author"):
        return True
    made = [each.pk for each in _that_made(snapshot)]
    return OutboxItem.objects.filter(wakeup__in=made, exclude_author=True).exists()


def may_accept(snapshot: MemorySnapshot, person: Person) -> bool:
    """Whether the rules let this person accept or restore a memory."""
    if not excludes_author(snapshot):
        return True
    return _POLICY.may_decide(user_id=person.user_id, authors=authors_of(snapshot))


def require_other(snapshot: MemorySnapshot, person: Person, *, verb: str) -> None:
    """Raise Refusal when this person may not accept or restore a memory, with why."""
    if excludes_author(snapshot):
        behind, what = authors_of(snapshot), f"memory {snapshot.pk}"
        authors.require_other(_POLICY, person, behind, what=what, verb=verb)


_POLICY = ApprovalPolicy(exclude_author=True)


def _that_made(snapshot: MemorySnapshot) -> list[Wakeup]:
    """The wakeups after which the workspace held exactly this, and before which it did not."""
    same = MemorySnapshot.objects.filter(assistant=snapshot.assistant, digest=snapshot.digest)
    rows = list(same.filter(wakeup__isnull=False).select_related("wakeup"))
    before = {each.wakeup_id for each in rows if each.moment == _Moment.BEFORE}
    made = [each for each in rows if each.moment == _Moment.AFTER and each.wakeup_id not in before]
    return [each.wakeup for each in made if each.wakeup is not None]


def _of_runs(snapshot: MemorySnapshot, before: MemorySnapshot | None) -> set[int]:
    """Who started runs in the workspace since the memory before."""
    place = str(workspace_of(snapshot.assistant))
    runs = Run.objects.filter(workspace=place, created_at__lte=snapshot.taken_at)
    if before is not None:
        runs = runs.filter(created_at__gt=before.taken_at)
    found = set(runs.values_list("requested_by", "requested_as"))
    users = {user for user, _ in found if user is not None}
    return users | authors.mapped({account for _, account in found})
