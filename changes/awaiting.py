"""Which changes and skills wait for one person: what they may decide on, and have not yet."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django.db.models import Exists, OuterRef

from changes import gate, rules
from changes.models import Change, RiskFlag, Skill
from runs import four_eyes
from runs.models import AuditEvent, Decision, TerminalAccount
from runs.refusal import Refusal

LOOKED_AT = 100  # changes whose authors are asked for; a count above that is no help to anybody


def open_changes() -> Any:
    """Those that a person is awaited for, the oldest first."""
    waiting = Change.objects.filter(state=Change.State.REVIEW, attempt__isnull=False)
    return waiting.select_related("repository", "attempt").order_by("state_at", "pk")


def open_skills() -> Any:
    return Skill.objects.filter(state=Skill.State.PROPOSED)


def changes_for(user: Any, found: Any = None) -> frozenset[int]:
    """Those whose acceptance by this person would count, and was not given yet.

    A fixed number of questions to the database, however many there are.

    Args:
        found: some of `open_changes`; all without.
    """
    if not user.has_perm("changes.decide_change"):
        return frozenset()
    second = RiskFlag.objects.filter(attempt=OuterRef("attempt"), needs_second_person=True)
    asked = open_changes() if found is None else found
    rows = list(asked.annotate(needs_second=Exists(second))[:LOOKED_AT])
    if not rows:
        return frozenset()
    given = Decision.objects.filter(actor=user, subject__startswith="change:")
    decided = set(given.values_list("subject", "digest"))
    theirs, is_strict = _asked_by(user, rows), four_eyes.is_on()
    excludes = {each.repository.uid: _excludes_author(each.repository.uid) for each in rows}
    return frozenset(
        each.pk
        for each in rows
        if (gate.subject_of(each), each.attempt.digest) not in decided
        and not (
            each.uid in theirs and (is_strict or each.needs_second or excludes[each.repository.uid])
        )
    )


def count_for(user: Any) -> int:
    """How many changes and skills wait for a decision that this person may take."""
    skills = open_skills().count() if user.has_perm("changes.decide_skill") else 0
    return len(changes_for(user)) + skills


def _asked_by(user: Any, rows: list[Change]) -> set[str]:
    """The changes of these that this person asked for, or for a revision of."""
    accounts = TerminalAccount.objects.filter(user=user)
    own = set(accounts.values_list("account", flat=True))
    subjects = {f"change:{each.uid}" for each in rows}
    revised: dict[str, set[Any]] = defaultdict(set)
    events = AuditEvent.objects.filter(action=gate.REVISED, subject__in=subjects)
    for subject, actor, account in events.values_list("subject", "actor", "account"):
        revised[subject] |= {actor, account}
    me = {user.pk, *own}
    return {
        each.uid
        for each in rows
        if {each.requested_by_id, each.requested_as} & me or revised[f"change:{each.uid}"] & me
    }


def _excludes_author(repository: str) -> bool:
    try:
        return rules.of(repository).exclude_author
    except Refusal:
        return False  # it is told on the change's page; nothing can be accepted meanwhile
