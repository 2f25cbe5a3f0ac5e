"""`change accept` and `change reject` at a terminal."""

from __future__ import annotations

import pytest

from changes.models import Change, TestRun
from runs.models import Decision
from tests.changes.commanding import Terminal
from tests.changes.rows import Project, make_change, run_git, state

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _an_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("changes.landing.identity", lambda path: ("Anna", "anna@example.org"))
    monkeypatch.setattr("changes.landing.signs", lambda path: False)


def digest(change: Change) -> str:
    return str(change.attempt.digest)


def test_an_accepted_change_is_a_branch_and_the_next_commands_are_named(
    sanduk: Terminal, project: Project
):
    change = project.change({"new.py": "x = 1\n"}, task="write new.py")

    said = sanduk("accept", change.uid, "--expect", digest(change)[:12])

    assert said.code == 0
    commit = run_git(project.path, "rev-parse", f"sanduk/{change.uid}")
    assert said.out.splitlines()[:3] == [
        f"change {change.uid} is accepted", f"branch  sanduk/{change.uid}", f"commit  {commit}"
    ]  # fmt: skip
    assert f"git -C {project.path} merge sanduk/{change.uid}" in said.out
    assert run_git(project.path, "show", "-s", "--format=%an, %cn, %s", commit) == (
        "scripted, Anna, write new.py"
    )
    assert run_git(project.path, "status", "--porcelain") == ""
    assert run_git(project.path, "symbolic-ref", "--short", "HEAD") == "main"
    shown = sanduk("show", change.uid)
    assert f"branch     sanduk/{change.uid} {commit[:12]}" in shown.out
    assert "accepted by anna" in shown.out


def test_accepting_again_says_what_it_is(sanduk, project: Project):
    change = project.change()
    assert sanduk("accept", change.uid).code == 0

    said = sanduk("accept", change.uid)

    assert (said.code, said.out) == (2, "")
    assert "was already accepted by anna" in said.err


def test_a_branch_can_be_named(sanduk, project: Project):
    change = project.change()

    told = sanduk("accept", change.uid, "--branch", "faster", "--json").data

    assert (told["state"], told["branch"], told["missing"]) == ("accepted", "faster", 0)
    assert run_git(project.path, "rev-parse", "faster") == told["commit"]


@pytest.mark.parametrize("expect", ["0" * 64, "abc", "zz"])
def test_what_is_not_what_was_read_is_refused(sanduk, project: Project, expect: str):
    change = project.change()

    said = sanduk("accept", change.uid, "--expect", expect)

    assert (said.code, said.out) == (2, "")
    assert f"sanduk change show {change.uid}" in said.err
    assert state(change) == "review"
    assert not Decision.objects.exists()


def test_without_a_name_to_commit_with_nothing_is_decided(sanduk, project: Project, monkeypatch):
    monkeypatch.setattr("changes.landing.identity", lambda path: None)
    change = project.change()

    said = sanduk("accept", change.uid)

    assert said.code == 2
    assert "git config --global user.name" in said.err
    assert state(change) == "review"


def test_missing_tests_are_run_and_red_ones_refuse(sanduk, project: Project, monkeypatch):
    project.rule('test_command = "make test"\n')
    change = project.change()

    def red(uid, person, *, command="", tell=print):
        tell("the tests run")
        row = project.tested(change, "make test", "failed")
        row.refresh_from_db()
        return row

    monkeypatch.setattr("changes.testing.test", red)

    said = sanduk("accept", change.uid)

    assert said.code == 2
    assert "sanduk: the tests run" in said.err
    assert "the tests on exactly this content: failed" in said.err
    assert state(change) == "review"

    without = sanduk("accept", change.uid, "--no-test")
    assert without.code == 2
    assert "--no-test needs a --reason" in without.err

    assert sanduk("accept", change.uid, "--no-test", "--reason", "they need a printer").code == 0
    assert TestRun.objects.count() == 1
    message = run_git(project.path, "show", "-s", "--format=%B", f"sanduk/{change.uid}")
    assert "Sanduk-Tests: failed; accepted without them" in message


def test_a_first_of_two_yeses_says_how_many_are_missing(
    sanduk, project: Project, django_user_model
):
    from runs.models import TerminalAccount

    user = django_user_model.objects.create(username="annabel")
    TerminalAccount.objects.create(account="anna", user=user)
    project.rule("approvals = 2\n")
    change = project.change()

    said = sanduk("accept", change.uid)

    assert said.out == f"change {change.uid}: your yes counts; 1 more needed\n"
    assert state(change) == "review"
    assert "it needs to be accepted by 2 people; 1 did so far" in sanduk("show", change.uid).out
    again = sanduk("accept", change.uid)
    assert again.code == 2
    assert "has decided on" in again.err


def test_a_landing_that_was_interrupted_is_finished_by_the_same_command(
    sanduk, project: Project, monkeypatch
):
    from changes.git import GitError

    change = project.change()

    def broken(*words, **options):
        raise GitError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("changes.landing.land", broken)
        said = sanduk("accept", change.uid)
    assert said.code == 2
    assert "git: the disk is full" in said.err
    assert state(change) == "landing"
    assert "its branch is still to be made" in sanduk("show", change.uid).out

    # whoever finishes it does so in the name of who decided
    monkeypatch.setattr("changes.landing.identity", lambda path: None)
    assert sanduk("accept", change.uid).code == 0
    assert state(change) == "accepted"


def test_a_rejection_needs_a_reason_and_is_final(sanduk, project: Project):
    change = project.change()

    assert "needs a --reason" in sanduk("reject", change.uid).err
    assert state(change) == "review"

    said = sanduk("reject", change.uid[:6], "--reason", "it is wrong")
    assert said.out == f"change {change.uid} is rejected\n"
    assert sanduk("reject", change.uid, "--reason", "again").code == 2
    assert sanduk("accept", change.uid).code == 2
    told = sanduk("show", change.uid, "--json").data
    assert [each["reason"] for each in told["decisions"]] == ["it is wrong"]
    assert (told["state"], told["decided_by"]) == ("rejected", "anna")


def test_what_has_not_come_back_yet_cannot_be_decided_on(sanduk):
    change = make_change()

    for words in (("accept", change.uid), ("reject", change.uid, "--reason", "no")):
        said = sanduk(*words)
        assert (said.code, said.out) == (2, "")
        assert "is queued: there is nothing to decide on yet" in said.err


def test_rules_that_cannot_be_read_are_told_and_land_nothing(sanduk, project: Project):
    change = project.change()
    project.rule("aprovals = 2\n")

    assert "did you mean approvals?" in sanduk("accept", change.uid).err
    assert "! it cannot be accepted:" in sanduk("show", change.uid).out
    assert state(change) == "review"
