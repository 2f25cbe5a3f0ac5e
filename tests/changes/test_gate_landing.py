"""From a decision to a branch, whatever happens on the way, and from one attempt to the next."""

from __future__ import annotations

import pytest

from changes import attempts, deciding, gate, landing
from changes.git import GitError
from changes.models import Attempt, Change
from runs.models import AuditEvent, Decision
from runs.refusal import HostRefusal, Refusal
from tests.changes.rows import (
    LEASE_S,
    OWNER,
    SOMEBODY,
    killed_after_landing,
    make_change,
    run_git,
    state,
    yes,
)

pytestmark = pytest.mark.django_db


def test_accepting_again_what_is_to_land_goes_on_with_it(project):
    change = project.change()
    gate.accept(change.uid, SOMEBODY, yes())
    planned = Change.objects.get(pk=change.pk).landing

    again = gate.accept(change.uid, SOMEBODY, yes(branch="other"))
    with pytest.raises(Refusal, match="read it again"):
        gate.accept(change.uid, SOMEBODY, yes(expect="0" * 64))
    gate.land(change.uid)

    assert again.change.landing == planned
    assert gate.land(change.uid).landed_commit == gate.land(change.uid).landed_commit
    assert Decision.objects.count() == 1
    assert AuditEvent.objects.filter(action="change.land").count() == 1


def test_a_crash_after_the_branch_was_made_ends_in_the_same_commit(project):
    change = project.change()
    gate.accept(change.uid, SOMEBODY, yes())
    made = killed_after_landing(change)
    assert state(change) == "landing"
    with pytest.raises(Refusal, match="already accepted"):
        gate.reject(change.uid, SOMEBODY, reason="too late")

    assert gate.land(change.uid).landed_commit == made
    assert run_git(project.path, "rev-parse", f"sanduk/{change.uid}") == made


@pytest.mark.parametrize("error", [GitError("no room"), HostRefusal("there is no git")])
def test_what_git_cannot_do_now_is_still_to_land(project, monkeypatch, error):
    change = project.change()
    gate.accept(change.uid, SOMEBODY, yes())

    def fail(*words, **how):
        raise error

    monkeypatch.setattr(landing, "land", fail)
    with pytest.raises(type(error)):
        gate.land(change.uid)
    assert state(change) == "landing"


def test_what_cannot_land_is_in_review_again_and_can_be_decided_anew(project):
    change = project.change()
    run_git(project.path, "branch", f"sanduk/{change.uid}")
    gate.accept(change.uid, SOMEBODY, yes())

    with pytest.raises(Refusal, match="is there already"):
        gate.land(change.uid)
    assert (state(change), change.round) == ("review", 2)
    assert "is there already" in change.reason
    assert run_git(project.path, "rev-parse", f"sanduk/{change.uid}") == project.base
    gate.accept(change.uid, SOMEBODY, yes(branch="mine"))

    assert gate.land(change.uid).state == "accepted"
    assert run_git(project.path, "rev-parse", "mine^1") == project.base


def test_what_cannot_land_can_still_be_rejected_by_who_accepted_it(project):
    change = project.change()
    gate.accept(change.uid, SOMEBODY, yes(branch="-x"))
    with pytest.raises(Refusal, match="no branch can be called"):
        gate.land(change.uid)

    gate.reject(change.uid, SOMEBODY, reason="then not")

    assert state(change) == "rejected"


def test_a_failed_revision_leaves_the_reviewed_work_to_be_accepted(project):
    change = project.change()
    first = change.attempt
    gate.revise(change.uid, SOMEBODY, "shorter", owner=OWNER, lease_s=LEASE_S)
    with pytest.raises(Refusal, match="running: there is nothing to decide on yet"):
        gate.accept(change.uid, SOMEBODY, yes())
    Change.objects.give_up(change.pk, OWNER, "failed", "the agent exited with 1")

    gate.accept(change.uid, SOMEBODY, yes())

    assert gate.land(change.uid).attempt == first


def test_every_attempt_is_kept_with_what_it_was_asked_for(project):
    change = project.change()
    gate.revise(change.uid, SOMEBODY, "shorter", owner=OWNER, lease_s=LEASE_S)
    with pytest.raises(Refusal):
        gate.revise(change.uid, SOMEBODY, "shorter", owner="other", lease_s=LEASE_S)
    project.attempt(change, {"new.py": "y = 2\n"})

    trees = [each.tree for each in Attempt.objects.filter(change=change)]
    assert len(set(trees)) == 2
    assert all(project.store.holds(tree) for tree in trees)


def test_an_attempt_that_changes_nothing_is_none(project):
    change = make_change(project.repository)
    Change.objects.claim(change.pk, OWNER, LEASE_S)

    assert project.attempt(change, {}) is None
    assert state(change) == "unchanged"


def test_a_result_of_a_process_that_lost_its_change_leaves_nothing(project):
    change = make_change(project.repository)
    Change.objects.claim(change.pk, "other", LEASE_S)

    with pytest.raises(attempts.Lost):
        project.attempt(change, {"new.py": "x\n"})
    assert not Attempt.objects.exists()


def test_flags_are_kept_with_their_paths_however_they_are_named(project):
    change = project.change({b"caf\xe9\n/.env": "x\n"})

    flag = change.attempt.flags.get(category="secret")
    assert flag.path == "caf\\xe9\\x0a/.env"


def test_nobody_finds_a_change_that_is_not_there():
    with pytest.raises(Refusal, match="there is no change"):
        gate.accept("nothing", SOMEBODY, yes())


def test_a_text_about_sockets_and_privileges_is_a_text(project):
    text = "mount /var/run/docker.sock, run with --privileged and --pid=host: never do that\n"
    change = project.change({"docs/security.md": text}, task="document the docker.sock mount")

    landed = deciding.accept(change.uid, SOMEBODY, yes())

    assert landed.state == "accepted"
    assert run_git(project.path, "show", f"{landed.landed_commit}:docs/security.md") + "\n" == text
