"""A person's yes or no to what an assistant remembers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.db import transaction

from assistants import belonging
from assistants.memory import trust
from assistants.memory.authorship import require_other
from assistants.memory.scanning import findings
from assistants.memory.snapshots import Memory, locked, put_by_hand, refuse_while_running
from assistants.models import Assistant, MemorySnapshot, Wakeup
from runs import audit
from runs.models import Decision
from runs.refusal import Refusal
from runs.verdicts import Person, check_reason

_Review = MemorySnapshot.Review


def accept(
    assistant: Assistant,
    snapshot: MemorySnapshot,
    *,
    actor: Any = None,
    via: str = "terminal",
    reason: str = "",
    behind: int | None = None,
) -> MemorySnapshot:
    """Trust a memory: the next wakeup of a reviewed assistant starts from it.

    Args:
        actor: the site user who decides; None for the OS account of this process.
        via: "web" or "terminal".
        behind: the newer memory behind which this may go back, by number.

    Raises Refusal when it does not wait for review, they asked for it or fed it where that counts,
    a secret may be in it and no reason says why it is trusted nevertheless, or it would go back
    behind a newer one that `behind` does not name.
    """
    belonging.require(actor, assistant, "see")  # before anything of it is told
    _check_waits(snapshot)
    require_other(snapshot, _person(actor), verb="accept")
    if not reason.strip():
        _check_plain(snapshot)
    with locked(assistant):
        newer = trust.newer_in_force(snapshot)
        if newer is not None and newer.pk != behind:
            raise Refusal(f"{goes_back(newer)}; to do it nevertheless, say so outright: --back")
        return _decide(snapshot, _Review.ACCEPTED, actor=actor, via=via, reason=reason)


def goes_back(newer: MemorySnapshot) -> str:
    """What accepting a memory would do that was taken before the one in force."""
    by = f"accepted by {newer.reviewed_by or 'somebody'}" if newer.reviewed_at else "taken"
    at = newer.reviewed_at or newer.taken_at
    return f"this goes back behind memory {newer.pk}, {by} at {at:%Y-%m-%d %H:%M} UTC"


def restore(
    assistant: Assistant, snapshot: MemorySnapshot, *, actor: Any = None
) -> tuple[MemorySnapshot, MemorySnapshot | None, Path | None]:
    """Make the workspace hold a snapshot again.

    Returns:
        The row of the restored memory; the one that holds what was there before; and where the
        old workspace stayed, if it held what no snapshot does.

    Raises Refusal while a wakeup or a run works there, when they asked for it or fed it where that
    counts, or when it cannot be restored.
    """
    belonging.require(actor, assistant, "see")
    require_other(snapshot, _person(actor), verb="restore")
    with locked(assistant) as memory:
        refuse_while_running(memory)
        done = put_by_hand(memory, snapshot)
        audit.record("memory.restore", f"memory:{snapshot.pk}", actor=actor, digest=snapshot.digest)
        return done


def _person(actor: Any) -> Person:
    return Person(user=actor, account="" if actor else audit.account())


def _check_waits(snapshot: MemorySnapshot) -> None:
    snapshot.refresh_from_db(fields=["review", "reviewed_at", "reviewed_by"])
    if snapshot.review != _Review.WAITING:
        raise Refusal(_why_not(snapshot))


def _check_plain(snapshot: MemorySnapshot) -> None:
    if found := findings(snapshot):
        raise Refusal(
            f"memory {snapshot.pk} may hold a secret ({found[0].line}); accepting it needs a "
            "reason: --reason TEXT"
        )


def reject(
    assistant: Assistant,
    snapshot: MemorySnapshot,
    *,
    reason: str,
    actor: Any = None,
    via: str = "terminal",
) -> tuple[MemorySnapshot, MemorySnapshot | None, Path | None]:
    """Distrust a memory. If the workspace holds it, it is put back to the last trusted one.

    While a wakeup runs, the workspace is left alone: the next one starts from a trusted memory.

    Returns:
        The rejected snapshot; the row of what the workspace was put back to, if it was; and where
        the old workspace stayed, if it held what no snapshot does.

    Raises Refusal when it does not wait for review, no reason is given, or a run that is no wakeup
    works in the workspace.
    """
    if not reason.strip():
        raise Refusal("a rejection needs a reason: --reason TEXT")
    with locked(assistant) as memory:
        back = _to_put_back(memory, snapshot)
        if back is not None:
            refuse_while_running(memory)
        done = _decide(snapshot, _Review.REJECTED, actor=actor, via=via, reason=reason)
        if back is None:
            return done, None, None
        taken, _, aside = put_by_hand(memory, back)
        return done, taken, aside


def _to_put_back(memory: Memory, snapshot: MemorySnapshot) -> MemorySnapshot | None:
    last = trust.newest(memory.assistant)
    running = Wakeup.objects.filter(assistant=memory.assistant, state=Wakeup.State.RUNNING)
    if last is None or running.exists():
        return None
    is_there = last.pk == snapshot.pk or last.digest == snapshot.digest
    return trust.start_from(memory.assistant) if is_there else None


@transaction.atomic
def _decide(
    snapshot: MemorySnapshot, to: _Review, *, actor: Any, via: str, reason: str
) -> MemorySnapshot:
    check_reason(reason)
    belonging.require(actor, snapshot.assistant, "see")
    by = actor.get_username() if actor else audit.account()
    if not MemorySnapshot.objects.review(snapshot.pk, to, reviewed_by=by, reason=reason):
        snapshot.refresh_from_db()
        raise Refusal(_why_not(snapshot))
    is_yes = to == _Review.ACCEPTED
    subject = f"memory:{snapshot.pk}"
    Decision.objects.create(
        subject=subject,
        digest=snapshot.digest,
        verdict=Decision.Verdict.APPROVE if is_yes else Decision.Verdict.REJECT,
        reason=reason,
        actor=actor,
        account="" if actor else by,
        via=via,
    )
    audit.record(
        "memory.accept" if is_yes else "memory.reject",
        subject,
        actor=actor,
        digest=snapshot.digest,
        reason=reason,
    )
    snapshot.refresh_from_db()
    return snapshot


def _why_not(snapshot: MemorySnapshot) -> str:
    if snapshot.review == _Review.NOT_ASKED:
        return f"snapshot {snapshot.pk} does not wait for review; restore goes back to one"
    return (
        f"snapshot {snapshot.pk} was {snapshot.review} already, by "
        f"{snapshot.reviewed_by or 'somebody'} at {snapshot.reviewed_at:%Y-%m-%d %H:%M} UTC"
    )
