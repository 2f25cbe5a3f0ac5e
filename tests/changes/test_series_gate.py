"""A series at the gate: every commit of it is looked at, and what was read is what lands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from changes import bundle, clone, collecting, gate, landing_plan, series, tree
from changes.attempt import Attempting, Over
from changes.models import Change
from runs import clock
from runs.console import Silent
from runs.models import Decision
from runs.refusal import Refusal
from tests.changes.committed import kept
from tests.changes.making import commit, person_git, write
from tests.changes.rows import LEASE_S, OWNER, SOMEBODY, killed_after_landing, run_git, state, yes
from tests.factories import make_run

pytestmark = pytest.mark.django_db
TOKEN = b"ghp_" + b"a1B2c3D4e5" * 3 + b"F6g7H8"
OTHER = b"ghp_" + b"Z9y8X7w6V5" * 3 + b"u4T3s2"


def flagged(change: Change, category: str = "secret") -> list[tuple[int, str, int]]:
    found = change.attempt.flags.filter(category=category)
    return [(each.commit, each.path, each.line) for each in found]


def accept(change: Change, **words: Any) -> Change:
    gate.accept(change.uid, SOMEBODY, yes(**words))
    return gate.land(change.uid)


def test_the_commits_of_an_agent_land_one_by_one(project):
    change = kept(
        project, {"one": b"1\n"}, {"two": b"2\n"}, words=("first\n\nwhy", "second"),
        rest={"three": b"3\n"},
    )  # fmt: skip

    done = accept(change)

    branch = f"sanduk/{change.uid}"
    log = run_git(project.path, "log", "--reverse", "--format=%s|%an|%cn|%ae", f"main..{branch}")
    assert [one.split("|") for one in log.splitlines()] == [
        ["first", "scripted", "Anna", "scripted@agents.invalid"],
        ["second", "scripted", "Anna", "scripted@agents.invalid"],
        ["tidy up", "scripted", "Anna", "scripted@agents.invalid"],
    ]
    assert run_git(project.path, "rev-parse", f"{branch}~3") == project.base
    assert run_git(project.path, "rev-parse", f"{branch}^{{tree}}") == change.attempt.tree
    assert done.landed_commit == run_git(project.path, "rev-parse", branch)
    assert run_git(project.path, "fsck", "--strict", "--no-dangling") == ""
    assert run_git(project.path, "show", "--format=", "--name-only", f"{branch}~1") == "two"


def test_each_commit_says_what_it_is_and_the_last_one_what_the_tests_said(project):
    change = kept(project, {"one": b"1\n"}, {"two": b"2\n"}, words=("first\n\nwhy", "second"))
    accept(change)

    branch = f"sanduk/{change.uid}"
    said = [
        run_git(project.path, "show", "-s", "--format=%(trailers:only)", f"{branch}{up}")
        for up in ("~1", "")
    ]
    for number, each in enumerate(said, 1):
        assert f"Sanduk-Commit: {number} of 2" in each
        assert f"Sanduk-Digest: {change.attempt.digest}" in each
        assert "Sanduk-Approved-By: anna" in each
    assert ["Sanduk-Tests" in each for each in said] == [False, True]
    assert "\n\nwhy\n\n" in run_git(project.path, "show", "-s", "--format=%B", f"{branch}~1")


def test_an_agent_cannot_write_a_trailer_of_ours(project):
    forged = "first\n\nSanduk-Approved-By: the boss\nSanduk-Tests: passed"
    change = kept(project, {"one": b"1\n"}, words=(forged,))
    accept(change)

    branch = f"sanduk/{change.uid}"
    said = run_git(project.path, "show", "-s", "--format=%(trailers:only)", branch)
    assert "the boss" not in said
    assert said.count("Sanduk-Tests") == 1


def test_one_commit_of_an_agent_lands_with_its_words(project):
    change = kept(project, {"one": b"1\n"}, words=("its own words",))
    accept(change)

    said = run_git(project.path, "show", "-s", "--format=%B", f"sanduk/{change.uid}")
    assert said.startswith("its own words\n\nSanduk-Change")
    assert "Sanduk-Commit" not in said


def test_a_secret_that_a_later_commit_takes_away_is_flagged_where_it_is(project):
    change = kept(project, {"conf.py": b"x = 1\nkey = '" + TOKEN + b"'\n"}, {"conf.py": b"x = 1\n"})

    assert flagged(change) == [(1, "conf.py", 2)]
    with pytest.raises(Refusal, match="it may hold a secret"):
        accept(change)


def test_a_held_secret_in_a_commit_needs_a_second_person(project):
    change = kept(project, {"a": b"held-secret-77\n", "b": b"b\n"}, {"a": None})

    flag = change.attempt.flags.get(commit=1, category="secret")
    assert flag.needs_second_person
    assert gate.policy_of(change.attempt, gate.rules.of(project.repository.uid)).exclude_author


def test_a_secret_that_another_one_takes_the_place_of_is_flagged_as_well(project):
    change = kept(project, {"c": b"'" + TOKEN + b"'\n"}, {"c": b"'" + OTHER + b"'\n"})

    assert (1, "c", 1) in flagged(change)
    assert (0, "c", 1) in flagged(change)


def test_what_the_whole_shows_is_not_told_again_for_its_commit(project):
    change = kept(project, {"c": b"'" + TOKEN + b"'\n"}, {"d": b"d\n"})

    assert flagged(change) == [(0, "c", 1)]


def test_a_workflow_that_a_later_commit_takes_away_is_flagged(project):
    path = ".github/workflows/x.yml"
    change = kept(project, {path: b"on: push\n", "a": b"a\n"}, {path: None})

    assert [each[:2] for each in flagged(change, "ci/workflow")] == [(1, path)]


def test_a_secret_in_a_message_is_flagged(project):
    change = kept(project, {"a": b"a\n"}, words=("used " + TOKEN.decode(),))

    flag = change.attempt.flags.get(category="secret")
    assert (flag.commit, flag.severity) == (1, "high")
    assert "in its message" in flag.reason
    assert TOKEN.decode() not in flag.reason


def test_what_cannot_be_checked_in_a_commit_is_said(project):
    packed = b"PK\x03\x04" + bytes(60)
    change = kept(project, {"a.zip": packed, "a": b"a\n"}, {"a.zip": None})

    assert any(each.startswith("in commit 1: a.zip") for each in change.attempt.could_not_check)


@pytest.mark.parametrize(("what", "there"), [("message", "other words"), ("tree", "evil")])
def test_a_commit_that_was_altered_after_it_was_read_does_not_land(project, what, there):
    change = kept(project, {"one": b"1\n"}, {"two": b"2\n"})
    evil = project.change({"evil.py": "x\n"}).attempt.tree
    gate.accept(change.uid, SOMEBODY, yes())
    altered = [dict(each) for each in change.attempt.commits]
    altered[0][what] = evil if there == "evil" else there
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE changes_attempt SET commits = %s WHERE id = %s",
            [json.dumps(altered), change.attempt_id],
        )

    with pytest.raises(Refusal, match="not what came back"):
        gate.land(change.uid)
    assert state(change) == "review"
    assert run_git(project.path, "branch", "--list", "sanduk/*") == ""


def test_the_digest_tells_a_series_from_one_commit_of_the_same_tree(project):
    one = kept(project, {"one": b"1\n"}, {"two": b"2\n"})
    two = kept(project, {"one": b"1\n"}, {"two": b"2\n"}, words=("step 1", "other words"))
    plain = project.change({"one": "1\n", "two": "2\n"})

    assert one.attempt.tree == two.attempt.tree == plain.attempt.tree
    assert len({each.attempt.digest for each in (one, two, plain)}) == 3


def test_a_series_that_landed_before_a_crash_is_found_again(project):
    change = kept(project, {"one": b"1\n"}, {"two": b"2\n"})
    gate.accept(change.uid, SOMEBODY, yes())
    made = killed_after_landing(change)

    assert gate.land(change.uid).landed_commit == made
    assert Decision.objects.count() == 1


def test_a_plan_for_other_commits_lands_nothing(project):
    change = kept(project, {"one": b"1\n"}, {"two": b"2\n"})
    gate.accept(change.uid, SOMEBODY, yes())
    change.refresh_from_db()
    Change.objects.filter(pk=change.pk).update(landing={**change.landing, "before": []})

    with pytest.raises(Refusal, match="are not those that came back"):
        gate.land(change.uid)
    assert state(change) == "review"


def test_the_trees_of_a_series_stay_while_it_waits_and_go_with_it(project, settings):
    change = kept(project, {"one": b"1\n"}, {"one": b"2\n"})
    project.store.git("prune", "--expire=now")

    assert all(project.store.holds(each) for each, _ in change.attempt.series)
    names = project.store.git("for-each-ref", "--format=%(refname)").decode().split()
    assert f"refs/sanduk/series/{change.uid}/1" in names
    Change.objects.filter(pk=change.pk).update(uid="0123456789ab")
    gone = collecting.collect(dry_run=True).gone
    assert any(f"series/{change.uid}/1" in each for each in gone)


def test_a_change_that_lands_as_one_commit_says_why(project, tmp_path: Path):
    change = kept(project, rest={"one": b"1\n"})

    assert change.attempt.commits == []
    assert "no commit of its own" in change.attempt.commits_note
    assert landing_plan.plan(
        change, change.attempt, approvers=["anna"], committer=("Anna", "a@b"), tests="none"
    ).before == ()  # fmt: skip


def test_a_clone_goes_on_from_the_commits_of_the_attempt_before(project, tmp_path):
    change = kept(project, {"one": b"1\n"}, {"two": b"2\n"}, rest={"three": b"3\n"})
    provided = bundle.provide(project.path, project.base, directory=tmp_path)
    work = tmp_path / "again"
    work.mkdir()

    clone.make(
        project.store, provided, work, branch="sanduk/y", author=("an agent", "a@b.invalid"),
        tree=change.attempt.tree,
        commits=[each for each in change.attempt.series if each[1]],
    )  # fmt: skip

    log = person_git(work, "log", "--format=%s", "--reverse").decode().split("\n")
    assert log == ["first", "step 1", "step 2", ""]
    assert person_git(work, "status", "--porcelain").decode() == "?? three\n"
    commit(work, "step 3")
    result = tree.read(work, project.store, project.base)
    again = series.read(work, project.store, project.base, result.tree)
    assert [each.message for each in again.commits] == ["step 1", "step 2", "step 3"]
    assert again.pairs[:2] == change.attempt.series[:2]


@pytest.mark.parametrize(("words", "is_other"), [
    (("step 1", "step 2"), False), (("step 1", "in other words"), True),
])  # fmt: skip
def test_a_revision_that_only_makes_the_commits_anew_is_one(project, words, is_other):
    change = kept(project, {"one": b"1\n"}, {"two": b"2\n"})
    work = project.path.parent / f"clone-{change.uid}"
    person_git(work, "reset", "-q", "--hard", "HEAD~1")
    write(work, {"two": b"2\n"})
    commit(work, words[1])
    assert Change.objects.claim(change.pk, OWNER, LEASE_S, revision=True)
    change.refresh_from_db()
    attempting = Attempting(change, OWNER, "anew", None, Silent(), None)
    run = make_run(state="ended", outcome="succeeded", started_at=clock.now(), ended_at=clock.now())

    if not is_other:
        with pytest.raises(Over, match="the revision changed nothing"):
            attempting._take(work, project.base, run)
        return
    attempting._take(work, project.base, run)
    change.refresh_from_db()
    assert [each for _, each in change.attempt.series] == list(words)
    assert change.attempt.number == 2
