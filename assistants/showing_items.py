"""Items of the outbox as people and scripts see them."""

from __future__ import annotations

from typing import Any

from assistants import places
from assistants.delivery.kinds import settings_of
from assistants.models import Delivery, OutboxItem
from assistants.outbox import approved_by, excludes_author, subject_of
from runs import secret_scan
from runs.models import Decision
from runs.refusal import Refusal
from runs.visible import visible


def as_json(item: OutboxItem) -> dict[str, Any]:
    """Everything of an item but its deliveries."""
    pending = item.state == OutboxItem.State.PENDING
    return {
        "id": item.pk,
        "assistant": item.assistant.name,
        "wakeup": item.wakeup_id,
        "run": run_of(item),
        "created_at": item.created_at,
        "state": item.state,
        "sha256": item.sha256,
        "approvals": item.approvals,
        "exclude_author": item.exclude_author,
        "expires_at": item.expires_at,
        "decided_at": item.decided_at,
        "decided_by": item.decided_by,
        "reason": item.reason,
        "delivered_at": item.delivered_at,
        "secrets_found": item.secrets_found,
        "altered": is_altered(item),
        "unreviewed_memory": item.unreviewed_memory,
        "pending": pending,
        "undelivered": item.state == OutboxItem.State.APPROVED,
        "awaiting_approval": pending,
        "body": item.body,
    }


def run_of(item: OutboxItem) -> str:
    run = item.wakeup.run if item.wakeup is not None else None
    return run.uid if run is not None else ""


def heading(item: OutboxItem) -> str:
    run = run_of(item)
    return (
        f"--- [{item.pk}] {item.assistant.name}{f' run {run}' if run else ''} "
        f"{item.created_at:%Y-%m-%dT%H:%M:%SZ} {item.state}"
    )


def warnings(item: OutboxItem) -> list[str]:
    """What a person should know before they decide, a line each."""
    lines = [finding.told() for finding in secret_scan.restored(item.secrets_found)]
    found = [f"secret? {visible(line)}" for line in lines]
    if item.unreviewed_memory:
        found.append("it comes from memory that nobody has reviewed")
    return found


def is_altered(item: OutboxItem) -> bool:
    """Whether a key was taken out of what the agent wrote."""
    return any(each.get("kind") == "replaced" for each in item.secrets_found)


def standing(item: OutboxItem) -> list[str]:
    """Who decided what, and what is missing, a line each."""
    lines = [f"sha256 {item.sha256}{' of the altered text' if is_altered(item) else ''}"]
    decisions = list(Decision.objects.filter(subject=subject_of(item)).select_related("actor"))
    is_open = item.state == OutboxItem.State.PENDING
    elsewhere = places.elsewhere(decisions, places.digest_of_places(item)) if is_open else {}
    for each in decisions:
        who = each.actor.get_username() if each.actor else each.account
        why = f": {visible(each.reason)}" if each.reason else ""
        verb = "approved" if each.verdict == Decision.Verdict.APPROVE else "rejected"
        lines.append(f"{verb} by {visible(who)} {each.at:%Y-%m-%d %H:%M:%S} UTC ({each.via}){why}")
        if each.pk in elsewhere:
            names = ", ".join(elsewhere[each.pk]) or "nowhere"
            lines.append(
                f"that approval does not count: it was for {visible(names)} as it was set up then, "
                f"and where the item goes has changed; {visible(who)} may approve once more"
            )
    if is_open:
        people = "1 person" if item.approvals == 1 else f"{item.approvals} people"
        author = ", somebody who neither asked for it nor fed it," if excludes_author(item) else ""
        if given := approved_by(item, decisions):
            names = visible(", ".join(given))
            lines.append(
                f"approved by {len(given)} of {people}{author.rstrip(',')}: {names}; waits for more"
            )
        else:
            lines.append(f"waits for {people}{author} to approve")
        leads = [each.name for each in places.places_of(item)]
        where = (
            f"would go to {visible(', '.join(leads))}" if leads else "would go nowhere by itself"
        )
        lines.append(f"once approved, it {where}")
        if item.expires_at is not None:
            lines.append(f"expires {item.expires_at:%Y-%m-%d %H:%M:%S} UTC, undelivered")
        if item.reason:
            lines.append(visible(item.reason))
    elif item.state == OutboxItem.State.EXPIRED:
        lines.append("expired: nobody decided in time")
    return lines


def deliveries(item: OutboxItem) -> list[Delivery]:
    return list(Delivery.objects.filter(item=item).select_related("destination"))


def delivery_json(delivery: Delivery) -> dict[str, Any]:
    return {
        "destination": delivery.destination.name,
        "number": delivery.number,
        "key": delivery.key,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "next_at": delivery.next_at if delivery.state in ("waiting", "failed") else None,
        "ended_at": delivery.ended_at,
        "error": delivery.error,
        "output": delivery.output,
    }


def delivery_line(delivery: Delivery) -> str:
    """One line about one delivery."""
    name = delivery.destination.name
    if name.startswith("by-hand-"):
        name = _command_of(delivery)
    again = f" (again, {delivery.number})" if delivery.number > 1 else ""
    tries = f" after {delivery.attempts} tries" if delivery.attempts > 1 else ""
    error = f": {visible(delivery.error)}" if delivery.error else ""
    retry = ""
    if delivery.state == Delivery.State.FAILED:
        retry = f"; next try {delivery.next_at:%H:%M:%S} UTC"
    state = delivery.get_state_display().lower().replace("_", " ")
    return f"{visible(name)}{again}: {state}{tries}{error}{retry}"


def _command_of(delivery: Delivery) -> str:
    try:
        return settings_of(delivery.destination.kind, delivery.destination.config).told()
    except Refusal:
        return delivery.destination.name
