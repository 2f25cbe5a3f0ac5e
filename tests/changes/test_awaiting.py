"""What waits for one person: not what they decided on, nor, where two must look, what is theirs."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model

from changes import awaiting, gate
from changes.models import Change
from runs import audit
from runs.models import Decision, TerminalAccount
from tests.changes.rows import reviewed

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada():
    return get_user_model().objects.create_superuser("ada", "ada@example.org", "x")


def awaits(user, change: Change, *, is_strict: bool = False) -> bool:
    return change.pk in awaiting.changes_for(user, is_strict=is_strict)


def asked_by(user, account: str) -> Change:
    change = reviewed()
    Change.objects.filter(pk=change.pk).update(requested_by=user, requested_as=account)
    change.refresh_from_db()
    return change


def decide(user, subject: str, digest: str) -> None:
    Decision.objects.create(
        subject=subject, digest=digest, verdict="approve", actor=user, account="", via="web"
    )


def test_what_one_decided_on_waits_no_more_and_another_content_does(ada):
    change, other = reviewed(), reviewed()
    assert awaits(ada, change)

    decide(ada, gate.subject_of(change), "0" * 64)
    assert awaits(ada, change), "that was another content"
    decide(ada, gate.subject_of(change), change.attempt.digest)

    assert not awaits(ada, change)
    assert awaits(ada, other)


def test_a_decision_of_an_earlier_round_does_not_count(ada):
    change = reviewed()
    decide(ada, gate.subject_of(change), change.attempt.digest)
    Change.objects.filter(pk=change.pk).update(round=2)
    change.refresh_from_db()

    assert awaits(ada, change)
    decide(ada, gate.subject_of(change), change.attempt.digest)
    assert not awaits(ada, change)


@pytest.mark.parametrize("how", ["site", "terminal", "revision", "revision at a terminal"])
def test_who_asked_for_it_is_awaited_only_where_one_person_is_enough(ada, how, monkeypatch):
    monkeypatch.setattr("runs.audit.account", lambda: "ada-os")
    TerminalAccount.objects.create(account="ada-os", user=ada)
    change = asked_by(ada if how == "site" else None, "ada-os" if how == "terminal" else "somebody")
    subject = f"change:{change.uid}"
    if how == "revision":
        audit.record(gate.REVISED, subject, actor=ada)
    elif how == "revision at a terminal":
        audit.record(gate.REVISED, subject)

    assert awaits(ada, change)
    assert not awaits(ada, change, is_strict=True)


def test_what_somebody_else_asked_for_is_awaited_where_two_must_look(ada):
    other = get_user_model().objects.create_user("bob")
    change = asked_by(other, "bob-os")
    audit.record(gate.REVISED, f"change:{change.uid}", actor=other)

    assert awaits(ada, change, is_strict=True)
