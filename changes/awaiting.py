"""Which changes and skills wait for one person: what they may decide on, and have not yet."""

from __future__ import annotations

from typing import Any

from django.db.models import Case, Exists, F, OuterRef, Q, TextField, Value, When
from django.db.models.functions import Cast, Concat

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


def changes_for(user: Any, found: Any = None, *, is_strict: bool | None = None) -> frozenset[int]:
    """Those whose acceptance by this person would count, and was not given yet.

    Args:
        found: some of `open_changes`, or rows of `judged`; all without.
        is_strict: whether four eyes are on; None: look.
    """
    if not user.has_perm("changes.decide_change"):
        return frozenset()
    if not isinstance(found, list):
        found = list(judged(open_changes() if found is None else found, user)[:LOOKED_AT])
    if not found:
        return frozenset()
    strict = four_eyes.is_on() if is_strict is None else is_strict
    excludes = {each.repository.uid: _excludes_author(each.repository.uid) for each in found}
    return frozenset(
        each.pk
        for each in found
        if not each.is_decided
        and not (each.is_theirs and (strict or each.needs_second or excludes[each.repository.uid]))
    )


def judged(found: Any, user: Any) -> Any:
    """Changes that know, in the same question, what their acceptance by this person would be.

    `needs_second`: a flag asks for another person than the author; `is_decided`: they decided
    on exactly this; `is_theirs`: they asked for it, or for a revision of it.
    """
    text = TextField()
    change = Concat(Value("change:"), F("uid"), output_field=text)
    round_ = Concat(change, Value("/"), Cast("round", text), output_field=text)
    accounts = TerminalAccount.objects.filter(user=user)
    second = RiskFlag.objects.filter(attempt=OuterRef("attempt"), needs_second_person=True)
    given = Decision.objects.filter(actor=user, digest=OuterRef("attempt__digest"))
    revised = AuditEvent.objects.filter(
        Q(actor=user) | Q(account__in=accounts.values("account")), action=gate.REVISED
    )
    return found.annotate(
        named=change,
        subject=Case(When(round__gt=1, then=round_), default=change, output_field=text),
    ).annotate(
        needs_second=Exists(second),
        is_decided=Exists(given.filter(subject=OuterRef("subject"))),
        is_theirs=Case(
            When(requested_by=user, then=True),
            When(Exists(accounts.filter(account=OuterRef("requested_as"))), then=True),
            When(Exists(revised.filter(subject=OuterRef("named"))), then=True),
            default=False,
        ),
    )


def count_for(user: Any) -> int:
    """How many changes and skills wait for a decision that this person may take."""
    skills = open_skills().count() if user.has_perm("changes.decide_skill") else 0
    return len(changes_for(user)) + skills


def _excludes_author(repository: str) -> bool:
    try:
        return rules.of(repository).exclude_author
    except Refusal:
        return False  # it is told on the change's page; nothing can be accepted meanwhile
