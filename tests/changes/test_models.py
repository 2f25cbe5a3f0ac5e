"""Rows of changes go one way, one process wins, and what was recorded stays as it was."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from changes.models import Attempt, Change, Repository, RiskFlag, Skill, TestRun
from changes.models.change import STEPS
from changes.models.repository import identity_of
from changes.store import place
from runs import clock
from runs.refusal import Refusal
from tests.changes.rows import (
    LEASE_S,
    OWNER,
    make_attempt,
    make_change,
    make_repository,
    reviewed,
)
from tests.factories import refused

pytestmark = pytest.mark.django_db


def in_state(state: str) -> Change:
    """A change that came to a state the ordinary way."""
    if state == "queued":
        return make_change()
    if state in ("running", "failed", "unchanged"):
        change = make_change()
        Change.objects.claim(change.pk, OWNER, LEASE_S)
        if state != "running":
            Change.objects.give_up(change.pk, OWNER, state, "because")
        return Change.objects.get(pk=change.pk)
    change = reviewed()
    if state == "rejected":
        Change.objects.reject(change.pk, change.attempt_id)
    if state in ("landing", "accepted"):
        Change.objects.begin_landing(change.pk, change.attempt_id, {"branch": "x"})
    if state == "accepted":
        Change.objects.finish_landing(change.pk, "c" * 40)
    return Change.objects.get(pk=change.pk)


MOVES = {
    "claim": lambda c: Change.objects.claim(c.pk, "other", LEASE_S),
    "revise": lambda c: Change.objects.claim(c.pk, "other", LEASE_S, revision=True),
    "present": lambda c: Change.objects.present(c.pk, OWNER, make_attempt(c)),
    "give up": lambda c: Change.objects.give_up(c.pk, OWNER, "failed", "x"),
    "drop": lambda c: Change.objects.drop(c.pk, "x"),
    "land": lambda c: Change.objects.begin_landing(c.pk, c.attempt_id, {}),
    "finish": lambda c: Change.objects.finish_landing(c.pk, "c" * 40),
    "undo": lambda c: Change.objects.undo_landing(c.pk, "x"),
    "reject": lambda c: Change.objects.reject(c.pk, c.attempt_id),
}
LEGAL = {
    ("queued", "claim"): "running",
    ("queued", "drop"): "failed",
    ("running", "present"): "review",
    ("running", "give up"): "failed",
    ("review", "revise"): "running",
    ("review", "land"): "landing",
    ("review", "reject"): "rejected",
    ("landing", "finish"): "accepted",
    ("landing", "undo"): "review",
}


@pytest.mark.parametrize(("state", "move"), list(itertools.product(Change.State.values, MOVES)))
def test_a_state_is_left_only_by_what_may_leave_it(state, move):
    change = in_state(state)
    assert change.state == state

    moved = MOVES[move](change)

    change.refresh_from_db()
    assert moved is ((state, move) in LEGAL)
    assert change.state == LEGAL.get((state, move), state)


def test_every_state_is_reached_by_some_step():
    assert set(STEPS) == set(Change.State.values) - {"queued"}


def test_one_process_claims_a_change():
    change = make_change()

    assert Change.objects.claim(change.pk, "one", LEASE_S)
    assert not Change.objects.claim(change.pk, "two", LEASE_S)
    assert not Change.objects.renew(change.pk, "two", LEASE_S)
    assert Change.objects.renew(change.pk, "one", LEASE_S)


def test_a_result_of_a_process_that_lost_the_change_is_not_presented():
    change = make_change()
    Change.objects.claim(change.pk, "one", LEASE_S)

    assert not Change.objects.present(change.pk, "two", make_attempt(change))
    assert not Change.objects.present(change.pk, "one", make_attempt(make_change()))


def test_a_failed_revision_leaves_the_attempt_before_it_in_review():
    change = reviewed()
    first = change.attempt
    Change.objects.claim(change.pk, "two", LEASE_S, revision=True)

    assert Change.objects.give_up(change.pk, "two", "failed", "it stopped")

    change.refresh_from_db()
    assert (change.state, change.attempt, change.reason) == ("review", first, "it stopped")
    assert (change.lease_owner, change.lease_until) == ("", None)


def test_a_change_whose_process_is_gone_ends_unless_it_lives_after_all():
    change = make_change()
    Change.objects.claim(change.pk, OWNER, LEASE_S)
    stale = Change.objects.get(pk=change.pk)
    Change.objects.renew(change.pk, OWNER, LEASE_S)

    assert not Change.objects.end_lost(stale, "its process is gone")
    assert Change.objects.end_lost(Change.objects.get(pk=change.pk), "its process is gone")
    change.refresh_from_db()
    assert (change.state, change.reason) == ("failed", "its process is gone")


def test_what_is_landing_is_not_ended_for_a_lost_process():
    change = in_state("landing")

    assert not Change.objects.end_lost(change, "gone")


def test_a_decision_on_an_attempt_that_was_replaced_moves_nothing():
    change = reviewed()
    old = change.attempt_id
    Change.objects.claim(change.pk, "two", LEASE_S, revision=True)
    Change.objects.present(change.pk, "two", make_attempt(change))

    assert not Change.objects.begin_landing(change.pk, old, {})
    assert not Change.objects.reject(change.pk, old)


def test_a_landing_that_is_undone_begins_a_round():
    change = in_state("landing")
    assert Change.objects.undo_landing(change.pk, "the base is gone")

    change.refresh_from_db()
    assert (change.round, change.decided_at, change.landing) == (2, None, {})


def test_no_step_leads_where_none_does():
    change = in_state("running")

    with pytest.raises(ValueError, match="does not lead to accepted"):
        Change.objects.give_up(change.pk, OWNER, "accepted", "x")


@pytest.mark.parametrize(
    "facts",
    [
        {"state": "review"},
        {"state": "running"},
        {"state": "rejected", "decided_at": clock.now()},
        {"state": "accepted", "decided_at": clock.now(), "landed_at": clock.now()},
        {"landed_commit": "c" * 40},
        {"decided_at": clock.now()},
        {"lease_until": clock.now()},
    ],
)
def test_the_database_itself_refuses_a_state_without_its_facts(facts):
    assert refused(lambda: make_change(**facts))


def test_a_change_that_failed_or_waits_to_begin_has_no_attempt():
    change = reviewed()

    for state in ("failed", "queued", "unchanged"):
        assert refused(lambda state=state: Change.objects.filter(pk=change.pk).update(state=state))


@pytest.mark.parametrize("field", ["base_commit", "base_tree", "tree", "digest"])
def test_an_attempt_is_whole(field):
    assert refused(lambda: make_attempt(make_change(), **{field: ""}))


def test_an_attempt_changes_something_and_has_its_own_number():
    change = make_change()
    make_attempt(change, number=1)

    assert refused(lambda: make_attempt(change, number=1))
    assert refused(lambda: make_attempt(change, number=0))
    assert refused(lambda: make_attempt(change, number=2, tree="2" * 40))


def test_an_attempt_and_its_flags_are_never_changed_or_deleted():
    attempt = make_attempt(make_change())
    flag = RiskFlag.objects.create(attempt=attempt, category="x", severity="low", reason="y")

    for row in (attempt, flag):
        with pytest.raises(TypeError):
            row.save()
        with pytest.raises(TypeError):
            row.delete()
        with pytest.raises(TypeError):
            type(row).objects.filter(pk=row.pk).update(pk=7)
        with pytest.raises(TypeError):
            type(row).objects.all().delete()
    assert Attempt.objects.count() == 1


def test_the_database_knows_three_severities():
    attempt = make_attempt(make_change())

    assert refused(
        lambda: RiskFlag.objects.create(attempt=attempt, category="x", severity="odd", reason="y")
    )


def test_a_test_run_ends_once_and_green_is_an_exit_status_of_zero():
    attempt = make_attempt(make_change())
    row = TestRun.objects.create(attempt=attempt, digest=attempt.digest, command="true")

    assert refused(lambda: TestRun.objects.finish(row.pk, "passed", exit_code=1))
    assert refused(lambda: TestRun.objects.finish(row.pk, "passed"))
    assert TestRun.objects.finish(row.pk, "failed", exit_code=1)
    assert not TestRun.objects.finish(row.pk, "passed", exit_code=0)


def test_green_is_of_one_content_and_one_command_and_the_last_answer_counts():
    attempt = make_attempt(make_change())

    def run(outcome: str, **fields) -> None:
        facts = {"digest": attempt.digest, "command": "true", **fields}
        row = TestRun.objects.create(attempt=attempt, **facts)
        TestRun.objects.finish(row.pk, outcome, exit_code=0 if outcome == "passed" else 1)

    run("passed", digest="0" * 64)
    run("passed", command="other")
    assert TestRun.objects.last_of(attempt.digest, "true") is None
    run("passed")
    assert TestRun.objects.last_of(attempt.digest, "true").outcome == "passed"
    run("failed")
    assert TestRun.objects.last_of(attempt.digest, "true").outcome == "failed"


def test_a_repository_is_one_row_by_its_path():
    one = Repository.objects.at("/srv/My Project.git")

    assert Repository.objects.at("/srv/My Project.git") == one
    assert one.uid == identity_of("/srv/My Project.git")
    assert one.uid.startswith("my-project-")
    assert Repository.objects.at("/other/My Project.git").uid != one.uid


@pytest.mark.parametrize("path", ["/", "/srv/-", "/srv/ä/日本", "/srv/" + "x" * 300])
def test_any_path_has_an_id_that_is_a_plain_name(path):
    uid = identity_of(path)
    assert uid.isascii()
    assert place(Path("/s"), uid).name == f"{uid}.git"


def test_a_path_that_no_row_can_hold_is_refused_in_words():
    with pytest.raises(Refusal, match=r"/srv/\\xff is no UTF-8"):
        Repository.objects.at("/srv/\udcff")


def test_one_version_of_a_skill_is_in_force():
    repository = make_repository()

    def make(version: int) -> Skill:
        attempt = make_attempt(make_change(repository))
        facts = {"body": "x", "sha256": "0" * 64, "version": version, "name": "tidy"}
        return Skill.objects.create(repository=repository, attempt=attempt, **facts)

    one, two = make(1), make(2)
    assert refused(lambda: make(2))
    assert Skill.objects.step(one.pk, "proposed", "approved")
    assert not Skill.objects.step(one.pk, "proposed", "approved")
    assert refused(lambda: Skill.objects.step(two.pk, "proposed", "approved"))
    assert list(Skill.objects.in_force(repository)) == [one]
    with pytest.raises(ValueError, match="never goes"):
        Skill.objects.step(one.pk, "approved", "rejected")
