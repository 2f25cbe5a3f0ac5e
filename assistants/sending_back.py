"""Rejecting an item with a note that its assistant reads at its next wakeup."""

from __future__ import annotations

from django.db import transaction

from assistants import mailbox
from assistants.models import OutboxItem
from assistants.outbox import Standing, decide
from runs.models import Decision
from runs.refusal import Refusal
from runs.verdicts import Person

SENT_BACK = "sent back: "  # how the reason of such a rejection begins


def is_sent_back(item: OutboxItem) -> bool:
    """Whether it was rejected with a note for its assistant."""
    return item.state == OutboxItem.State.REJECTED and item.reason.startswith(SENT_BACK)


def send_back(pk: int, person: Person, *, expect: str, note: str) -> Standing:
    """Reject an item; the note is its reason, and becomes a message of this person.

    Raises Refusal when the note is empty, or where `outbox.decide` and `mailbox.tell` do. Then
    neither is done.
    """
    if not note.strip():
        raise Refusal("sending back needs a note: the assistant reads it at its next wakeup")
    with transaction.atomic():
        standing = decide(
            pk, Decision.Verdict.REJECT, person, expect=expect, reason=f"{SENT_BACK}{note}"
        )
        item: OutboxItem = standing.item
        written = f"{item.created_at:%Y-%m-%d %H:%M} UTC"
        mailbox.tell(
            item.assistant,
            f"What you wrote on {written} (item {item.pk}) was not sent. It was sent back with "
            f"this note:\n\n{note}",
            source=person.via,
            author=person.user,
            needs="see",  # who may decide on it may say why
        )
    return standing
