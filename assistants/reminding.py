"""One reminder of each item that nobody decided on for long: that it waits, never what it says.

It goes to those destinations of its assistant that were added with `--reminders`. Items that are
due together are one reminder. An item is marked before it is sent, so it is told of at most once.
"""

from __future__ import annotations

import datetime as dt
import logging

from assistants.delivery.parcel import Doubtful, Failed, Parcel
from assistants.delivery.sending import send_test
from assistants.models import Assistant, Destination, OutboxItem
from assistants.models.sending import new_key
from assistants.outbox import digest_of
from runs import audit, clock
from runs.duration import spoken
from runs.refusal import Refusal
from runs.visible import visible

_log = logging.getLogger(__name__)
_PENDING = OutboxItem.State.PENDING


def remind_due() -> int:
    """Send the reminders that are due; how many items they were about."""
    reminded = 0
    rows = Destination.objects.filter(removed_at=None, remind_after_s__isnull=False)
    for assistant in Assistant.objects.present().filter(destinations__in=rows).distinct():
        places = list(assistant.destinations.filter(pk__in=rows))
        shortest_s = min(each.remind_after_s or 0 for each in places)
        if fresh := _marked(assistant, shortest_s):
            reminded += fresh
            _send(assistant, places)
    return reminded


def _marked(assistant: Assistant, after_s: float) -> int:
    """Mark what waits for so long and was not told of yet; how many: this process tells of them."""
    now = clock.now()
    due = OutboxItem.objects.filter(
        assistant=assistant,
        state=_PENDING,
        reminded_at=None,
        created_at__lte=now - dt.timedelta(seconds=after_s),
    )
    return due.update(reminded_at=now)


def _send(assistant: Assistant, places: list[Destination]) -> None:
    pending = OutboxItem.objects.filter(assistant=assistant, state=_PENDING)
    oldest = pending.order_by("created_at", "pk").first()
    if oldest is None:
        return  # decided on at this moment
    told = waiting(pending.count(), oldest.created_at)
    body = f"{assistant.name}: {told}.\nsanduk outbox --pending --name {assistant.name}\n"
    for place in places:
        parcel = Parcel(
            assistant=assistant.name,
            item=oldest.pk,
            run="",
            key=new_key(),
            number=1,
            created_at=oldest.created_at,
            sha256=digest_of(body),
            body=body,
            subject=f"{assistant.name}: {told}",
        )
        _send_one(place, parcel)


def _send_one(place: Destination, parcel: Parcel) -> None:
    subject = f"assistant:{parcel.assistant}"
    try:
        send_test(place, parcel)
    except (Failed, Doubtful, Refusal) as exc:
        why = visible(str(exc), limit=300)
        _log.warning("a reminder of %s did not reach %s: %s", parcel.assistant, place.name, why)
        audit.record_policy("reminder.failed", subject, destination=place.name, why=why)
    else:
        audit.record_policy("reminder.send", subject, destination=place.name)


def waiting(count: int, since: dt.datetime) -> str:
    """So many items wait, and for how long, in words."""
    age = spoken(max((clock.now() - since).total_seconds(), 0))
    if count == 1:
        return f"1 item waits for a decision, for {age}"
    return f"{count} items wait for a decision, the oldest for {age}"
