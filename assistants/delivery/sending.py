"""The ledger of deliveries: what is due is sent by one process, and each end is written down."""

from __future__ import annotations

import datetime as dt
import logging
from collections import defaultdict
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from django.db import connections, transaction

from assistants import appending, outbox
from assistants.delivery import apprise_url, command, file, mail, webhook
from assistants.delivery.kinds import settings_of
from assistants.delivery.parcel import (
    ERROR_MAX,
    Doubtful,
    Failed,
    Parcel,
    kept,
    parcel_of,
)
from assistants.models import Delivery, Destination, OutboxItem
from runs import audit, clock, lease
from runs.refusal import Refusal
from runs.visible import visible

_log = logging.getLogger(__name__)

ATTEMPTS_MAX = 10
FIRST_WAIT_S, LONGEST_WAIT_S = 30, 3600
ASKED_WAIT_MAX_S = 86400  # however long a receiver asks for
# how long after its own time limit a sender may still be at work, before it counts as gone
GRACE_S = 60
TOGETHER_MAX = 32  # destinations that are served at the same time
FAILURES_MAX = 3  # of one destination in one pass; the others of its items are tried in the next

Sender = Callable[[Parcel, Any, float], str]
_SENDERS: dict[str, Sender] = {
    Destination.Kind.COMMAND: command.send,
    Destination.Kind.WEBHOOK: webhook.send,
    Destination.Kind.EMAIL: mail.send,
    Destination.Kind.FILE: file.send,
    Destination.Kind.APPRISE: apprise_url.send,
}


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one pass did: deliveries by how they ended."""

    sent: int = 0
    failed: int = 0
    given_up: int = 0
    unknown: int = 0


def deliver_due(
    now: dt.datetime | None = None, *, item: int | None = None, to: Collection[str] = ()
) -> Delivered:
    """Send everything that is due, each destination on its own; what is over is settled first.

    Safe to call from any number of processes at once.

    Args:
        item: only this one.
        to: only to the destinations of these names.
    """
    now = now or clock.now()
    outbox.expire_due(now)
    lost = recover(now)
    due = Delivery.objects.filter(
        state__in=[Delivery.State.WAITING, Delivery.State.FAILED],
        next_at__lte=now,
        item__state__in=[OutboxItem.State.APPROVED, OutboxItem.State.DELIVERED],
    )
    if item is not None:
        due = due.filter(item=item)
    if to:
        due = due.filter(destination__name__in=to)
    queues: dict[int, list[int]] = defaultdict(list)
    for pk, destination in due.order_by("next_at", "pk").values_list("pk", "destination"):
        queues[destination].append(pk)
    ends = _send_all(list(queues.values()))
    counts = {state: ends.count(state) for state in ("sent", "failed", "given_up", "unknown")}
    counts["unknown"] += lost
    return Delivered(**counts)


def recover(now: dt.datetime | None = None) -> int:
    """Say of deliveries whose sender is gone in the middle that nothing is known; how many."""
    now = now or clock.now()
    found = 0
    for each in Delivery.objects.filter(state=Delivery.State.SENDING):
        owner = lease.owner_is(each.lease_owner)
        over = each.lease_until is not None and each.lease_until <= now
        # of another machine's process only its lease tells
        if owner == "gone" or (owner == "unknown" and over):
            why = "the process that was sending it is gone; it may have arrived"
            if Delivery.objects.mark_unknown(each, why):
                found += 1
                _tell("unknown", each, why)
    return found


def send_test(destination: Destination, parcel: Parcel) -> str:
    """Send something that is in no ledger. Raises Failed, Doubtful, Refusal."""
    settings = settings_of(destination.kind, destination.config)
    appending.check(destination.name, settings)
    return kept(_SENDERS[destination.kind](parcel, settings, destination.timeout_s))


def _send_all(queues: list[list[int]]) -> list[str]:
    """One thread for each destination: a slow one keeps nobody waiting."""
    if len(queues) <= 1:
        return [end for queue in queues for end in _send_queue(queue)]
    with ThreadPoolExecutor(min(len(queues), TOGETHER_MAX), thread_name_prefix="deliver") as pool:
        return [end for ends in pool.map(_in_thread, queues) for end in ends]


def _in_thread(queue: list[int]) -> list[str]:
    try:
        return _send_queue(queue)
    finally:
        connections.close_all()


def _send_queue(queue: list[int]) -> list[str]:
    ends: list[str] = []
    for pk in queue:
        end = _send_one(pk)
        ends += [end] if end else []
        if len(ends) - ends.count("sent") >= FAILURES_MAX:
            break
    return ends


def _send_one(pk: int) -> str:
    """Claim it, send it, say how that ended; "" when it is somebody else's."""
    timeout_s = Delivery.objects.values_list("destination__timeout_s", flat=True).get(pk=pk)
    owner = lease.owner()
    if not Delivery.objects.claim(pk, owner, timeout_s + GRACE_S):
        return ""
    delivery = Delivery.objects.select_related(
        "destination", "item__assistant", "item__wakeup__run"
    ).get(pk=pk)
    try:
        output = send_test(delivery.destination, parcel_of(delivery))
    except Refusal as exc:
        return _not_sent(delivery, Failed(str(exc), lasting=True))
    except Failed as exc:
        return _not_sent(delivery, exc)
    except Doubtful as exc:
        return _finish(delivery, "unknown", error=str(exc), output=kept(exc.output))
    except BaseException as exc:
        # stopped or broken in the middle: what was begun may have arrived
        end = _finish(delivery, "unknown", error=f"sending broke off: {type(exc).__name__}")
        if not isinstance(exc, Exception):
            raise
        _log.exception("delivery %s broke off", delivery.pk)
        return end
    return _finish(delivery, "sent", output=output, error="")


def _not_sent(delivery: Delivery, why: Failed) -> str:
    """Try again later, longer each time, until it is enough."""
    facts = {"error": str(why), "output": kept(why.output)}
    if why.lasting or delivery.attempts >= ATTEMPTS_MAX:
        return _finish(delivery, "given_up", **facts)
    wait_s = min(FIRST_WAIT_S * 2 ** (delivery.attempts - 1), LONGEST_WAIT_S)
    wait_s = max(wait_s, min(why.wait_s, ASKED_WAIT_MAX_S))
    return _finish(delivery, "failed", next_at=clock.now() + dt.timedelta(seconds=wait_s), **facts)


def _finish(delivery: Delivery, state: str, *, error: str, **facts: Any) -> str:
    """Write down how an attempt ended; the item is delivered when each destination has it."""
    error = visible(error, limit=ERROR_MAX)
    with transaction.atomic():
        if not Delivery.objects.finish(
            delivery.pk, delivery.lease_owner, state, error=error, **facts
        ):
            return "unknown"  # another process took this one for gone
        if state == "sent":
            settle(delivery.item)
        else:
            _tell(state, delivery, error)
    return state


def settle(item: OutboxItem) -> bool:
    """Mark an item delivered if every destination it went to has got it. In a transaction.

    One at a time looks: of two that end together, neither would see what the other has sent.
    Names count: what a removed destination did not get, the one put in its place may have.
    """
    OutboxItem.objects.select_for_update().get(pk=item.pk)
    rows = Delivery.objects.filter(item=item).values_list("destination__name", "state")
    places = {destination for destination, _ in rows}
    got = {destination for destination, state in rows if state == Delivery.State.SENT}
    return bool(places) and places == got and OutboxItem.objects.mark_delivered(item.pk)


def _tell(state: str, delivery: Delivery, why: str) -> None:
    """What a person must look at is written down for them; a failure that is retried is not."""
    if state in ("unknown", "given_up"):
        audit.record_policy(
            f"delivery.{state}",
            f"outbox:{delivery.item_id}",
            destination=delivery.destination_id,
            number=delivery.number,
            why=why,
        )
