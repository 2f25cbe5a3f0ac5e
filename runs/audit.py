"""Writing down what people did, and finding out whether what was written still stands."""

from __future__ import annotations

import getpass
from dataclasses import dataclass
from typing import Any

from runs import audit_head
from runs.models import AuditEvent

TROUBLES_MAX = 20


def account() -> str:
    """The OS account this process runs as, "uid N" when it has no name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        import os

        return f"uid {os.getuid()}"


def record(action: str, subject: str = "", *, actor: Any = None, **detail: Any) -> AuditEvent:
    """Append one audit event. `detail` must hold nothing secret."""
    event: AuditEvent = AuditEvent.objects.create(
        action=action,
        subject=subject,
        actor=actor,
        account="" if actor else account(),
        detail=detail,
    )
    return event


def record_policy(action: str, subject: str, **detail: Any) -> AuditEvent:
    """Append what no person did: a rule of the configuration, or the clock."""
    event: AuditEvent = AuditEvent.objects.create(
        action=action, subject=subject, account="policy", detail=detail
    )
    return event


@dataclass(frozen=True, slots=True)
class Verified:
    """What the whole chain looks like. No trouble: every event is as it was written.

    Attributes:
        events: how many were checked.
        troubles: what is wrong, in words, the first TROUBLES_MAX.
        unwitnessed: events after the last one that is kept outside; a crash leaves one or two.
    """

    events: int
    troubles: tuple[str, ...]
    unwitnessed: int


def verify() -> Verified:
    """Check every event's hash, that each follows the one before, and the head kept outside."""
    troubles: list[str] = []
    number, before, at_head = 0, "", ""
    # the file first: an event that is written meanwhile must not look like a cut
    head, problem = _head()
    for event in AuditEvent.objects.order_by("number").iterator(chunk_size=500):
        if event.number != number + 1:
            troubles.append(f"events {number + 1} to {event.number - 1} are missing")
        elif event.previous != before:
            troubles.append(f"event {event.number} does not follow the one before it")
        if audit_head.chained(event.number, event.previous, event.facts()) != event.sha256:
            troubles.append(f"event {event.number} was changed after it was written")
        number, before = event.number, event.sha256
        if head is not None and head.number == number:
            at_head = before
    if problem:
        troubles.append(problem)
    elif head is None and number:
        troubles.append(f"{audit_head.path()} is missing: whether the end was cut is not known")
    elif head is not None and head.number > number:
        troubles.append(f"the end was cut: there were {head.number} events, there are {number}")
    elif head is not None and at_head != head.sha256:
        troubles.append(f"the end was replaced: event {head.number} is not the one that was kept")
    after = max(number - head.number, 0) if head else number
    return Verified(events=number, troubles=tuple(troubles[:TROUBLES_MAX]), unwitnessed=after)


def _head() -> tuple[audit_head.Head | None, str]:
    try:
        return audit_head.kept(), ""
    except (OSError, ValueError):
        return None, f"{audit_head.path()} cannot be read: whether the end was cut is not known"
