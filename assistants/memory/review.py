"""A person's yes or no to what an assistant remembers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.db import transaction

from assistants import belonging
from assistants.memory import trust
from assistants.memory.scanning import findings
from assistants.memory.snapshots import Memory, locked, put_by_hand, refuse_while_running
from assistants.models import Assistant, MemorySnapshot, Wakeup
from runs import audit
from runs.models import Decision
from runs.refusal import Refusal
from runs.verdicts import check_reason

_Review = MemorySnapshot.Review


def accept(
    assistant: Assistant,
    snapshot: MemorySnapshot,
    *,
    actor: Any = None,
    via: str = "terminal",
    reason: str = "",
) -> MemorySnapshot:
    """Trust a memory: the next wakeup of a reviewed assistant starts from it.

    Args:
        actor: the site user who decides; None for the OS account of this process.
        via: "web" or "terminal".

    Raises Refusal when it does not wait for review, or a secret may be in it and no reason says
    why it is trusted nevertheless.
    """
    belonging.require(actor, assistant, "see")  # before anything of it is told
    if not reason.strip():
        _check_plain(snapshot)
    with locked(assistant):
        return _decide(snapshot, _Review.ACCEPTED, actor=actor, via=via, reason=reason)


def _check_plain(snapshot: MemorySnapshot) -> None:
    if snapshot.review != _Review.WAITING:
        return
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
