"""Where an item goes, and for which of those places a person's approval counts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from assistants.models import ApprovedPlaces, Destination, OutboxItem
from runs import audit
from runs.models import Decision
from runs.verdicts import Person, check_reason


def places_of(item: OutboxItem) -> list[Destination]:
    """Where an item goes when it is approved now. What is added later does not get it."""
    return list(item.assistant.destinations.filter(removed_at=None).order_by("pk"))


def digest_of(places: Iterable[Destination]) -> str:
    """Names exactly these destinations, as they are set up."""
    facts = [[each.pk, each.name, each.kind, each.config] for each in places]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def digest_of_places(item: OutboxItem) -> str:
    """The digest of where an item goes, as it is set up now."""
    return digest_of(places_of(item))


def keep(decision: Decision, places: list[Destination]) -> None:
    """Write down that an approval is for exactly these."""
    ApprovedPlaces.objects.create(
        decision=decision, digest=digest_of(places), names=[each.name for each in places]
    )


def approve_again(
    decision: Decision, places: list[Destination], person: Person, reason: str
) -> None:
    """Let an approval that was given for other places count for these, too. Raises Refusal."""
    check_reason(reason)
    keep(decision, places)
    actor = {"actor": person.user} if person.user is not None else {}
    names = [each.name for each in places]
    facts = {"sha256": decision.digest, "reason": reason, "places": names}
    audit.record("outbox.approve-again", decision.subject, **actor, **facts)


def counting(decisions: Iterable[Decision], digest: str) -> list[Decision]:
    """Rejections, and those approvals that were given for the places of `digest`."""
    found = list(decisions)
    given = ApprovedPlaces.objects.filter(decision__in=found, digest=digest)
    here = set(given.values_list("decision", flat=True))
    return [each for each in found if each.verdict != Decision.Verdict.APPROVE or each.pk in here]


def elsewhere(decisions: Iterable[Decision], digest: str) -> dict[int, list[str]]:
    """The names that approvals were given for which do not count for `digest`, by decision."""
    found = list(decisions)
    counted = {each.pk for each in counting(found, digest)}
    left = [each.pk for each in found if each.pk not in counted]
    rows = ApprovedPlaces.objects.filter(decision__in=left).order_by("pk")
    named: dict[int, list[str]] = {pk: [] for pk in left}
    return named | dict(rows.values_list("decision", "names"))
