"""The approval policy: how many people, which people, for which content, until when."""

from __future__ import annotations

import datetime as dt

import pytest

from runs.approval import ApprovalPolicy
from runs.models import Decision

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
ANNA, BORIS, CLARA = 1, 2, 3


def by(actor: int | None, verdict: str = "approve", digest: str = "d", after: dt.timedelta = HOUR):
    return Decision(
        subject="outbox:1", digest=digest, verdict=verdict, actor_id=actor, at=START + after
    )


def standing(policy: ApprovalPolicy, *decisions: Decision, authors=(), now=START + 2 * HOUR) -> str:
    return policy.standing(
        decisions, digest="d", authors=frozenset(authors), appeared_at=START, now=now
    )


ONE, TWO = ApprovalPolicy(), ApprovalPolicy(approvals=2)
EYES = ApprovalPolicy(exclude_author=True)


@pytest.mark.parametrize(
    ("policy", "decisions", "authors", "expected"),
    [
        (ONE, [], (), "pending"),
        (ONE, [by(ANNA)], (), "approved"),
        (ONE, [by(ANNA)], (ANNA,), "approved"),
        (ONE, [by(None)], (), "approved"),
        (ONE, [by(ANNA, digest="other")], (), "pending"),
        (ONE, [by(ANNA, "reject")], (), "rejected"),
        (ONE, [by(ANNA, "reject", digest="other")], (), "pending"),
        (ONE, [by(ANNA), by(BORIS, "reject")], (), "rejected"),
        (ONE, [by(BORIS, "reject"), by(ANNA)], (), "rejected"),
        (TWO, [by(ANNA)], (), "pending"),
        (TWO, [by(ANNA), by(ANNA)], (), "pending"),
        (TWO, [by(ANNA), by(BORIS)], (), "approved"),
        (TWO, [by(ANNA), by(None)], (), "pending"),
        (TWO, [by(None), by(None)], (), "pending"),
        (TWO, [by(ANNA), by(BORIS, digest="other")], (), "pending"),
        (EYES, [by(ANNA)], (ANNA,), "pending"),
        (EYES, [by(BORIS)], (ANNA,), "approved"),
        (EYES, [by(None)], (ANNA,), "pending"),
        (EYES, [by(None)], (), "pending"),
        (EYES, [by(ANNA, "reject")], (ANNA,), "rejected"),
        (ApprovalPolicy(2, exclude_author=True), [by(ANNA), by(BORIS)], (ANNA,), "pending"),
        (ApprovalPolicy(2, exclude_author=True), [by(CLARA), by(BORIS)], (ANNA,), "approved"),
    ],
)
def test_where_a_content_stands(policy, decisions, authors, expected):
    assert standing(policy, *decisions, authors=authors) == expected


@pytest.mark.parametrize(
    ("after", "expected"), [(HOUR, "pending"), (2 * HOUR, "expired"), (9 * HOUR, "expired")]
)
def test_an_undecided_content_expires(after, expected):
    """openclaw#150769: waiting has a deadline and a declared outcome."""
    policy = ApprovalPolicy(expires_after=2 * HOUR)

    assert standing(policy, now=START + after) == expected


def test_what_was_approved_in_time_stays_approved():
    policy = ApprovalPolicy(expires_after=2 * HOUR)

    assert standing(policy, by(ANNA, after=HOUR), now=START + 9 * HOUR) == "approved"


@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_a_decision_after_the_expiry_raises_nothing_from_the_dead(verdict):
    policy = ApprovalPolicy(expires_after=2 * HOUR)

    late = by(ANNA, verdict, after=2 * HOUR)
    assert standing(policy, late, now=START + 9 * HOUR) == "expired"


def test_half_of_the_approvals_in_time_are_not_enough():
    policy = ApprovalPolicy(approvals=2, expires_after=2 * HOUR)
    decisions = [by(ANNA, after=HOUR), by(BORIS, after=3 * HOUR)]

    assert standing(policy, *decisions, now=START + 4 * HOUR) == "expired"


@pytest.mark.parametrize("approvals", [0, -1])
def test_no_approval_at_all_is_no_policy(approvals):
    with pytest.raises(ValueError, match="at least one"):
        ApprovalPolicy(approvals=approvals)


@pytest.mark.parametrize(
    ("policy", "user", "authors", "expected"),
    [
        (ONE, ANNA, (), True),
        (ONE, ANNA, (ANNA,), True),
        (ONE, None, (), True),
        (TWO, ANNA, (), True),
        (TWO, None, (), False),
        (EYES, ANNA, (ANNA,), False),
        (EYES, BORIS, (ANNA,), True),
        (EYES, None, (), False),
    ],
)
def test_whose_decision_would_count(policy, user, authors, expected):
    assert policy.may_decide(user_id=user, authors=frozenset(authors)) is expected
