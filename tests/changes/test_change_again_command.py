"""`change revise`, `test` and `gc`, up to where the box begins."""

from __future__ import annotations

from typing import Any

import pytest

from changes.collecting import Collected
from changes.models import Change, TestRun
from tests.changes.rows import OWNER, Project, make_change

pytestmark = pytest.mark.django_db


def test_a_revision_is_told_as_what_it_brought(sanduk, project: Project, monkeypatch):
    change = project.change({"a.py": "one\n"})
    asked: list[str] = []

    def revise(uid: str, person: Any, task: str, tell: Any = None) -> Change:
        asked.append(task)
        assert Change.objects.claim(change.pk, OWNER, 30.0, revision=True)
        project.attempt(change, {"a.py": "two\n"})
        return Change.objects.select_related("repository", "attempt", "run").get(uid=uid)

    monkeypatch.setattr("changes.making.revise", revise)

    said = sanduk("revise", change.uid[:6], "--task", "say two")

    assert said.code == 0
    assert asked == ["say two"]
    assert f"change {change.uid} is in review: 1 file" in said.out
    shown = sanduk("show", change.uid).out
    assert "attempt    2 of 2" in shown


def test_a_revision_that_failed_leaves_the_attempt_before_and_says_so(
    sanduk, project: Project, monkeypatch
):
    change = project.change({"a.py": "one\n"})

    def revise(uid: str, person: Any, task: str, tell: Any = None) -> Change:
        assert Change.objects.claim(change.pk, OWNER, 30.0, revision=True)
        assert Change.objects.give_up(change.pk, OWNER, "failed", "run x timed out")
        return Change.objects.select_related("repository", "attempt", "run").get(uid=uid)

    monkeypatch.setattr("changes.making.revise", revise)

    said = sanduk("revise", change.uid, "--task", "say two")

    assert (said.code, said.out) == (1, "")
    assert "the attempt before is still the one in review: run x timed out" in said.err


def test_only_what_is_in_review_is_revised(sanduk):
    change = make_change()

    assert sanduk("revise", change.uid, "--task", "x").code == 2
    assert "give a task: sanduk change revise" in sanduk("revise", change.uid).err


def test_a_detached_revision_needs_a_worker(sanduk, project: Project, monkeypatch):
    change = project.change()
    monkeypatch.setattr("changes.handover.give_revision", lambda uid, person, task: False)

    assert "no worker is up" in sanduk("revise", change.uid, "--task", "x", "--detach").err
    monkeypatch.setattr("changes.handover.give_revision", lambda uid, person, task: True)
    assert sanduk("revise", change.uid, "--task", "x", "--detach").out == f"{change.uid}\n"


@pytest.mark.parametrize(
    ("outcome", "code"), [("passed", 0), ("failed", 1), ("timed_out", 124), ("not_run", 2)]
)
def test_tests_end_with_a_code_of_their_own(sanduk, project: Project, monkeypatch, outcome, code):
    change = project.change()
    given: list[str] = []

    def test(uid: str, person: Any, *, command: str = "", tell: Any = None) -> TestRun:
        tell("they run")
        given.append(command)
        attempt = change.attempt
        row = TestRun.objects.create(attempt=attempt, digest=attempt.digest, command="make")
        facts = {"exit_code": 0} if outcome == "passed" else {"reason": "so it is\x1b[2J"}
        TestRun.objects.finish(row.pk, outcome, output="all of it\x1b[2J\n", **facts)
        row.refresh_from_db()
        return row

    monkeypatch.setattr("changes.testing.test", test)

    said = sanduk("test", change.uid, "--test-cmd", "make check")

    assert said.code == code
    assert given == ["make check"]
    assert "sanduk: they run" in said.err
    assert "| all of it" in said.out
    assert "\x1b" not in said.out
    told = sanduk("test", change.uid, "--json", "-q").data
    assert told["outcome"] == outcome


def test_tests_need_something_to_test_and_a_command(sanduk, project: Project):
    assert "there is nothing to test" in sanduk("test", make_change().uid).err
    said = sanduk("test", project.change().uid)
    assert said.code == 2
    assert "--test-cmd" in said.err


def test_what_goes_is_said_and_trouble_is_1(sanduk, monkeypatch):
    asked: list[bool] = []

    def collect(*, dry_run: bool = False) -> Collected:
        asked.append(dry_run)
        return Collected(gone=["clone abc"], bytes=2048, troubles=["refs could not be looked at"])

    monkeypatch.setattr("changes.collecting.collect", collect)

    said = sanduk("gc", "--dry-run")

    assert (said.code, said.out, asked) == (1, "clone abc\n", [True])
    assert "1 thing would go, 2,048 bytes" in said.err
    assert "refs could not be looked at" in said.err
    assert sanduk("gc", "--json").data["gone"] == ["clone abc"]
    monkeypatch.setattr("changes.collecting.collect", lambda dry_run=False: Collected())
    assert "there is nothing to do" in sanduk("gc").err


def test_what_waits_or_goes_on_is_cancelled_and_nothing_else(sanduk, project: Project):
    queued, going, waits = make_change(), make_change(), project.change()
    assert Change.objects.claim(going.pk, OWNER, 30.0)

    assert sanduk("cancel", queued.uid).out == (
        f"change {queued.uid} is cancelled; it had not begun\n"
    )
    assert sanduk("cancel", going.uid, "--json").data["cancelled"] == "asked"
    said = sanduk("cancel", waits.uid)
    assert said.code == 2
    assert "is review: nothing of it goes on" in said.err
    queued.refresh_from_db()
    going.refresh_from_db()
    assert (queued.state, going.stop_by) == ("failed", "anna")
