"""The gate: what a wakeup wants to say waits here until enough people, or the policy, say yes."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from assistants import authors, belonging, memory, places
from assistants.config import Config
from assistants.models import Delivery, Destination, OutboxItem, Wakeup
from runs import audit, clock, four_eyes, secret_scan
from runs.approval import ApprovalPolicy
from runs.models import Decision
from runs.refusal import Refusal
from runs.verdicts import POLICY, Person, approvers, check_expected, write_down


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an item stands after a decision."""

    item: OutboxItem
    approvals: int  # given so far by different people

    @property
    def missing(self) -> int:
        """How many more people must approve."""
        pending = self.item.state == OutboxItem.State.PENDING
        return max(self.item.approvals - self.approvals, 1) if pending else 0


def write(wakeup: Wakeup, body: str, config: Config) -> OutboxItem:
    """Put what a wakeup wants to say in the outbox, in the transaction that ends it.

    Without `hold` the policy approves it at once, unless a secret was found in it or could not be
    looked for, or one was taken out: then it waits for a person like the others.
    """
    body = _storable(body)
    now = clock.now()
    findings = [*secret_scan.replaced(body), *secret_scan.scan(body)]
    with transaction.atomic():
        item = OutboxItem.objects.create(
            assistant=wakeup.assistant,
            wakeup=wakeup,
            body=body,
            sha256=digest_of(body),
            created_at=now,
            approvals=config.approvals,
            exclude_author=config.exclude_author,
            expires_at=now + dt.timedelta(seconds=config.expires_s) if config.expires_s else None,
            secrets_found=[finding.plain() for finding in findings],
            unreviewed_memory=memory.is_unreviewed(wakeup.assistant),
        )
        if not config.hold:
            _decide_by_policy(item)
    return item


def _decide_by_policy(item: OutboxItem) -> None:
    if item.secrets_found:
        reason = "not approved by itself: a secret may be in it"
        OutboxItem.objects.filter(pk=item.pk).update(reason=reason)
        audit.record_policy("outbox.hold", subject_of(item), sha256=item.sha256, why=reason)
        item.refresh_from_db()
        return
    reason, leads = "the assistant's items need no approval", places.places_of(item)
    person = Person(account=POLICY, via=POLICY)
    _write_down(item, Decision.Verdict.APPROVE, person, reason, leads)
    _settle(item, OutboxItem.State.APPROVED, POLICY, reason, leads)
    item.refresh_from_db()


def decide(
    pk: int,
    verdict: Decision.Verdict,
    person: Person,
    *,
    expect: str | None = None,
    seen_places: str | None = None,
    reason: str = "",
) -> Standing:
    """One person's verdict on what an item says.

    An approval is for where the item goes at that moment. When that is changed before everybody
    has approved, it counts no more until the same person approves once more.

    Args:
        expect: the beginning of the digest of what the person read; None when it was not given.
        seen_places: `places.digest_of_places` as the person read it; None: as it is now.
        reason: why; a rejection needs one, and so does letting a found secret pass.

    Raises Refusal: it was decided already, it is not what the person read, or they may not decide.
    """
    expire_due()
    with transaction.atomic():
        item = _locked(pk)
        belonging.require(person.user, item.assistant, "see")
        _check_open(item)
        _check_read(item, expect)
        if verdict == Decision.Verdict.REJECT and not reason:
            raise Refusal("a rejection needs a --reason: the assistant's owner will ask")
        if verdict == Decision.Verdict.APPROVE:
            _check_may_approve(item, person, reason)
        leads = places.places_of(item)
        goes_to = places.digest_of(leads)
        if verdict == Decision.Verdict.APPROVE and seen_places not in (None, goes_to):
            raise Refusal(f"where item {item.pk} goes has changed meanwhile; read it again")
        _write_down(item, verdict, person, reason, leads)
        given = Decision.objects.filter(subject=subject_of(item)).select_related("actor")
        decisions = places.counting(given, goes_to)
        standing = _policy_of(item).standing(
            decisions,
            digest=item.sha256,
            authors=authors_of(item),
            appeared_at=item.created_at,
            now=clock.now(),
        )
        if standing in (OutboxItem.State.APPROVED, OutboxItem.State.REJECTED):
            names = _names(decisions, item) if standing == "approved" else person.name
            _settle(item, standing, names, reason, leads)
        item.refresh_from_db()
        return Standing(item, approvals=_approvals(decisions, item))


def approved_by(item: OutboxItem, decisions: Iterable[Decision]) -> list[str]:
    """The people whose approvals count for what an item says and where it goes now, by name."""
    given = places.counting(decisions, places.digest_of_places(item))
    return sorted(approvers(given, item.sha256).values())


def expire_due(now: dt.datetime | None = None) -> int:
    """End what nobody decided in time; how many. It is never delivered."""
    now = now or clock.now()
    due = OutboxItem.objects.filter(state=OutboxItem.State.PENDING, expires_at__lte=now)
    ended = 0
    for item in due.only("pk", "sha256"):
        with transaction.atomic():
            why = "nobody decided in time"
            if OutboxItem.objects.decide(item.pk, "expired", decided_by=POLICY, reason=why):
                audit.record_policy("outbox.expire", subject_of(item), sha256=item.sha256)
                ended += 1
    return ended


def subject_of(item: OutboxItem) -> str:
    return f"outbox:{item.pk}"


def digest_of(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def authors_of(item: OutboxItem) -> frozenset[int]:
    """The site users who asked for this wakeup, or fed it a message."""
    return authors.of_wakeup(item.wakeup)


def excludes_author(item: OutboxItem) -> bool:
    """Whether who asked for an item or fed it cannot approve it: by its own rule, or by ours."""
    return item.exclude_author or four_eyes.is_on()


def may_approve(item: OutboxItem, person: Person) -> bool:
    """Whether the rules let this person approve it: not one who asked for it, where that counts."""
    return not excludes_author(item) or _policy_of(item).may_decide(
        user_id=person.user_id, authors=authors_of(item)
    )


def _storable(text: str) -> str:
    """Without what no database keeps: NUL, and halves of characters."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{SYMBOL FOR NULL}")


def _locked(pk: int) -> OutboxItem:
    """The item, which nobody else decides meanwhile (SQLite's transactions see to it alone)."""
    found = (
        OutboxItem.objects.select_for_update(of=("self",))
        .select_related("assistant", "wakeup")
        .filter(pk=pk)
        .first()
    )
    if found is None:
        raise Refusal(f"there is no item {pk}; sanduk outbox lists them")
    return found


def _check_open(item: OutboxItem) -> None:
    if item.state == OutboxItem.State.PENDING or item.decided_at is None:
        return
    state = "approved" if item.state == OutboxItem.State.DELIVERED else item.state
    by = f" by {item.decided_by}" if item.decided_by else ""
    raise Refusal(
        f"item {item.pk} was already {state}{by} at {item.decided_at:%Y-%m-%d %H:%M:%S} UTC; "
        "a decision is final"
    )


def _check_read(item: OutboxItem, expect: str | None) -> None:
    if digest_of(item.body) != item.sha256:
        raise Refusal(f"item {item.pk} is not what the wakeup wrote: its digest does not fit")
    again = f"sanduk outbox show {item.pk}"
    check_expected(item.sha256, expect, what=f"item {item.pk}", again=again)


def _check_may_approve(item: OutboxItem, person: Person, reason: str) -> None:
    if item.secrets_found and not reason:
        raise Refusal(
            f"item {item.pk} may hold a secret (sanduk outbox show {item.pk}); letting it pass "
            "needs a --reason"
        )
    what = f"item {item.pk}"
    authors.require_other(_policy_of(item), person, authors_of(item), what=what, verb="approve")


def _policy_of(item: OutboxItem) -> ApprovalPolicy:
    expires = item.expires_at - item.created_at if item.expires_at is not None else None
    return ApprovalPolicy(
        approvals=item.approvals, exclude_author=excludes_author(item), expires_after=expires
    )


def _write_down(
    item: OutboxItem,
    verdict: Decision.Verdict,
    person: Person,
    reason: str,
    leads: list[Destination],
) -> None:
    """Keep a decision, with where what is approved goes.

    Raises Refusal when this person has decided on this content before, unless they approved it
    for other places.
    """
    is_approval = verdict == Decision.Verdict.APPROVE
    earlier = _approval_by(person, item) if is_approval else None
    if earlier is not None and not places.counting([earlier], places.digest_of(leads)):
        places.approve_again(earlier, leads, person, reason)
        return
    kept = write_down(
        subject_of(item), item.sha256, verdict, person, reason, what=f"item {item.pk}"
    )
    if is_approval:
        places.keep(kept, leads)


def _approval_by(person: Person, item: OutboxItem) -> Decision | None:
    theirs = {"actor": person.user, "account": "" if person.user is not None else person.account}
    given = Decision.objects.filter(
        subject=subject_of(item), digest=item.sha256, verdict=Decision.Verdict.APPROVE, **theirs
    )
    found: Decision | None = given.first()
    return found


def _settle(
    item: OutboxItem, state: str, by: str, reason: str, leads: Iterable[Destination]
) -> None:
    """Leave `pending`, and begin to deliver what was approved to where that was approved for."""
    if not OutboxItem.objects.decide(item.pk, state, decided_by=by[:300], reason=reason):
        raise Refusal(f"item {item.pk} was decided by somebody else just now")
    if state == OutboxItem.State.APPROVED:
        for each in leads:
            Delivery.objects.get_or_create(item=item, destination=each)


def _approvals(decisions: Iterable[Decision], item: OutboxItem) -> int:
    return len(approvers(decisions, item.sha256))


def _names(decisions: Iterable[Decision], item: OutboxItem) -> str:
    return ", ".join(sorted(approvers(decisions, item.sha256).values()))


def items() -> Any:
    """Every item with what a list shows of it."""
    return OutboxItem.objects.select_related("assistant", "wakeup", "wakeup__run")
