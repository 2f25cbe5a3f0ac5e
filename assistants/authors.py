"""Who asked for what came of a wakeup, or fed it, and whether their own yes to it counts."""

from __future__ import annotations

from assistants import asked
from assistants.models import InboxMessage, Wakeup
from runs.approval import ApprovalPolicy
from runs.models import AuditEvent, TerminalAccount
from runs.refusal import Refusal
from runs.verdicts import Person


def of_wakeup(wakeup: Wakeup | None) -> frozenset[int]:
    """The site users who asked for a wakeup, or fed it a message."""
    if wakeup is None:
        return frozenset()
    fed = InboxMessage.objects.filter(given_to=wakeup).values_list("author", "account")
    users = {author for author, _ in fed if author is not None}
    slots = [asked.subject_of(each) for each in asked.attempts(wakeup)]
    events = AuditEvent.objects.filter(action=asked.ACTION, subject__in=slots, actor__isnull=False)
    accounts = {account for _, account in fed} | {wakeup.asked_by}
    return frozenset(users | set(events.values_list("actor", flat=True)) | mapped(accounts))


def require_other(
    policy: ApprovalPolicy, person: Person, authors: frozenset[int], *, what: str, verb: str
) -> None:
    """Raise Refusal, with why, when this person's yes would not count.

    Args:
        authors: who asked for it or fed it.
        what: the thing in words, as "item 7".
        verb: what the yes is, as "approve".
    """
    if policy.may_decide(user_id=person.user_id, authors=authors):
        return
    if person.user is None:
        people = "1 person" if policy.approvals == 1 else f"{policy.approvals} people"
        besides = " other than who asked for it or fed it" if policy.exclude_author else ""
        raise Refusal(
            f"{what} is for {people}{besides} to {verb}, and the account {person.account} is "
            f"mapped to no site user: sanduk user map {person.account} USER"
        )
    raise Refusal(f"{person.name} asked for {what} or fed it, and cannot {verb} it")


def mapped(accounts: set[str]) -> set[int]:
    """The site users that OS accounts are mapped to."""
    found = TerminalAccount.objects.filter(account__in=accounts - {""})
    return set(found.values_list("user", flat=True))
