"""Who asked for a wakeup: a person on the web or at a terminal, or only its schedule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from assistants.models import Wakeup
from runs.models import AuditEvent, Run

ACTION = "wakeup.ask"  # in the audit: which site user asked for a wakeup


@dataclass(frozen=True, slots=True)
class Asker:
    """As a run's row keeps it.

    Args:
        trigger: one of `Run.Trigger`.
        user: the site user who asked on the web.
        account: the OS account that asked at a terminal; "" for a schedule, too.
    """

    trigger: str
    user: Any = None
    account: str = ""


def asker_of(wakeup: Wakeup) -> Asker:
    """Of one that is tried again: who asked for the first."""
    *_, first = attempts(wakeup)
    if first.trigger != Wakeup.Trigger.HAND:
        return Asker(Run.Trigger.SCHEDULE)
    events = AuditEvent.objects.filter(action=ACTION, subject=subject_of(first))
    event = events.select_related("actor").order_by("number").first()
    if event is not None and event.actor is not None:
        return Asker(Run.Trigger.WEB, event.actor)
    return Asker(Run.Trigger.TERMINAL, account=first.asked_by)


def attempts(wakeup: Wakeup) -> Iterator[Wakeup]:
    """It, and the interrupted ones before it that it was tried again for."""
    current: Wakeup | None = wakeup
    while current is not None:
        yield current
        current = current.again_of


def subject_of(wakeup: Wakeup) -> str:
    return f"wakeup:{wakeup.pk}"
