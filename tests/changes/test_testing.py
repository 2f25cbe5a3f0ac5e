"""Tests of a change: what is refused, what is run, where, and what becomes of a lost one."""

from __future__ import annotations

import datetime as dt
import os
import stat
from pathlib import Path

import pytest

from changes import attempts, deciding, fresh, gate, testing, testing_later
from changes.models import TestRun
from changes.place import remove_whole
from runs import clock, lease
from runs.agents.command import Ending
from runs.models import Run
from runs.models.run import Outcome
from runs.refusal import Refusal
from tests.accounts import acting_as, needs_root, open_directory
from tests.changes.rows import OWNER, SOMEBODY, make_change, run_git, yes
from tests.factories import make_run

pytestmark = pytest.mark.django_db


def plan_of(change, tmp_path: Path, command: str = "pytest -q"):
    return testing.plan_of(testing.asked(change.uid, command), tmp_path)


def test_what_cannot_be_tested_is_refused_before_any_row(project):
    queued = make_change(project.repository)
    there = project.change()

    for uid, command, why in (
        ("nosuchchange", "true", "there is no change"),
        (queued.uid, "true", "nothing to test"),
        (there.uid, "", "no tests are named for project: give --test-cmd, or write test_command"),
        (there.uid, " \n", "no tests are named"),
        (there.uid, "a\0b", "a text of at most"),
        (there.uid, "x" * 20_001, "a text of at most"),
    ):
        with pytest.raises(Refusal, match=why):
            testing.test(uid, SOMEBODY, command=command)
    assert not TestRun.objects.exists()
    assert not Run.objects.exists()


def test_what_the_store_holds_must_be_what_was_read(project, monkeypatch):
    change = project.change()
    monkeypatch.setattr(attempts, "is_intact", lambda *_: False)

    with pytest.raises(Refusal, match="not what came back"):
        testing.test(change.uid, SOMEBODY, command="true")
    assert not TestRun.objects.exists()


def test_the_command_is_the_persons_then_the_operators_then_the_installations(project, settings):
    settings.SANDUK_TEST_COMMAND = "make check"
    change = project.change({"sanduk.toml": 'test_command = "true"\n', "repos/x.toml": ""})
    assert testing.asked(change.uid).command == "make check"

    project.rule('test_command = "pytest -q"\n')

    assert testing.asked(change.uid).command == "pytest -q"
    assert testing.asked(change.uid, " tox ").command == "tox"


def test_the_box_has_no_network_no_model_and_no_key(project, tmp_path):
    project.rule('test_timeout = "7m"\n')
    asked = {"mode": "open", "env": {"A": "b"}, "env_names": ["PATH"], "memory": "2g",
             "budget_usd": 1.0, "mounts": ["/srv:/data:rw"], "agent": "scripted"}  # fmt: skip
    change = project.change(order=asked)

    plan = plan_of(change, tmp_path)

    order = plan.order
    assert (order.no_network, order.relayed, plan.provider, plan.link_image) == (
        True, False, None, None,
    )  # fmt: skip
    assert (order.env, order.env_names, order.mounts, order.memory) == ({}, (), (), "2g")
    assert (order.timeout_s, order.report_instruction) == (420, False)
    assert plan.agent.is_command
    assert plan.image.tag.startswith("sanduk-scripted:")
    assert plan.launch("").argv[-1] == "pytest -q"


def test_they_run_where_the_change_was_made_unless_the_operator_names_a_recipe(project, tmp_path):
    of_image = project.change(order={"image": "team/tool:1"})
    assert plan_of(of_image, tmp_path).image.tag == "team/tool:1"

    project.rule('recipe = "codex"\n')

    plan = plan_of(project.change({"b": "1"}), tmp_path)
    assert plan.image.tag.startswith("sanduk-codex:")
    of_recipe = project.change({"c": "1"}, order={"recipe": "pi"})
    assert plan_of(of_recipe, tmp_path).image.tag.startswith("sanduk-pi:")


def test_an_order_of_another_version_is_tested_in_its_agents_image(project, tmp_path):
    change = project.change(order={"no": "such field"})

    assert plan_of(change, tmp_path).image.tag.startswith("sanduk-scripted:")


def test_an_agent_that_is_gone_is_named(project, tmp_path):
    change = project.change(agent="left-long-ago")

    with pytest.raises(Refusal, match="left-long-ago"):
        plan_of(change, tmp_path)


# -- the directory -----------------------------------------------------------------------------
def test_the_directory_holds_exactly_the_tree_and_is_gone_after_it(project):
    change = project.change(
        {
            "run.sh": ("100755", "#!/bin/sh\n"),
            "out": ("120000", "/etc/passwd"),
            "crlf.txt": b"a\r\nb\r\n",
            b"\xe9.bin": b"\x00\xe9",
            ".gitattributes": "* text eol=lf filter=evil\n",
        }
    )
    store = attempts.kept_store(project.repository)

    with fresh.directory(change.attempt, store) as place:
        assert sorted(os.fsencode(each.name) for each in place.iterdir()) == [
            b".git", b".gitattributes", b"README.md", b"crlf.txt", b"out", b"run.sh", b"\xe9.bin",
        ]  # fmt: skip
        assert (place / "crlf.txt").read_bytes() == b"a\r\nb\r\n"
        assert (place / "out").readlink() == Path("/etc/passwd")
        assert (place / "run.sh").stat().st_mode & stat.S_IXUSR
        assert place.stat().st_uid != 0
        assert run_git_in(place, "rev-parse", "HEAD") == project.base
        assert run_git_in(place, "remote") == ""
        assert run_git_in(place, "log", "--format=%H", "--all") == project.base
        (place / "shut").mkdir()
        (place / "shut" / "x").write_text("")
        (place / "shut").chmod(0)
        (place / "way out").symlink_to(project.path)

    assert not list(fresh.place().iterdir())
    assert (project.path / "README.md").exists()


def run_git_in(place: Path, *words: str) -> str:
    return run_git(place, "-c", "safe.directory=*", *words)


def test_a_directory_whose_process_is_gone_is_removed_and_others_stay(project):
    change = project.change()
    store = attempts.kept_store(project.repository)
    gone = fresh.place() / "left"
    (gone / "work" / "deep").mkdir(parents=True)
    (gone / "owner").write_text("/".join([*lease.owner().split("/")[:3], "4194303", "1"]))

    with fresh.directory(change.attempt, store) as place:
        assert fresh.remove_left() == 1
        assert place.is_dir()
    assert not gone.exists()


@needs_root
def test_what_tests_left_without_rights_is_removed_by_an_ordinary_account_too():
    with open_directory() as outside, acting_as():
        (outside / "kept").write_text("")
        ground = outside / "ground"
        deep = ground / "work" / "a" / "b"
        deep.mkdir(parents=True)
        (deep / "file").write_text("")
        (ground / "work" / "out").symlink_to(outside)
        for path in (deep, deep.parent):
            path.chmod(0)

        remove_whole(ground)

        assert [path.name for path in outside.iterdir()] == ["kept"]


# -- how it ended ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("outcome", "code", "expected"),
    [
        (Outcome.SUCCEEDED, 0, "passed"),
        (Outcome.SUCCEEDED, None, "not_run"),
        (Outcome.FAILED, 1, "failed"),
        (Outcome.FAILED, 127, "failed"),
        (Outcome.OUT_OF_MEMORY, 137, "failed"),
        (Outcome.TIMED_OUT, 137, "timed_out"),
        (Outcome.TIMED_OUT, None, "timed_out"),
        (Outcome.REFUSED, None, "not_run"),
        (Outcome.INTERRUPTED, None, "not_run"),
        (Outcome.INTERRUPTED, 0, "not_run"),
        (Outcome.CANCELLED, 0, "not_run"),
        (Outcome.FAILED, None, "not_run"),
    ],
)
def test_only_a_status_of_zero_of_a_run_that_ended_well_is_green(outcome, code, expected):
    said, _ = testing.outcome_of(Run(outcome=outcome, agent_exit_code=code, reason="why"))

    assert said == expected


def test_the_end_of_the_output_begins_with_a_line_and_holds_no_nul():
    ending = Ending(16)
    ending.add(b"the first line\nsecond\n\x00\xff\n")

    assert testing._text(ending) == "second\n␀�\n"


# -- lost ones ---------------------------------------------------------------------------------
def row_of(change, **fields) -> TestRun:
    facts = {"attempt": change.attempt, "digest": change.attempt.digest, "command": "true"}
    return TestRun.objects.create(**{**facts, **fields})


def test_tests_whose_process_is_gone_are_no_answer(project):
    change = project.change()
    ended = {"state": "ended", "outcome": "interrupted", "exit_code": 143}
    killed = row_of(
        change,
        run=make_run(
            **ended, end_is_lower_bound=True, ended_at=clock.now(), reason="its process is gone"
        ),
    )
    long_ago = clock.now() - dt.timedelta(minutes=5)
    unwritten = row_of(change, run=make_run(**ended, ended_at=long_ago))

    assert testing_later.look() == 2

    for row, why in ((killed, "its process is gone"), (unwritten, "the process that ran it")):
        row.refresh_from_db()
        assert row.outcome == "not_run"
        assert why in row.reason
    assert gate.tests_of(change.attempt, "true").outcome == "not_run"


def test_tests_that_go_on_or_wait_are_left_alone(project):
    change = project.change()
    just_now = {"state": "ended", "outcome": "succeeded", "exit_code": 0, "ended_at": clock.now()}
    row_of(change, run=make_run(state="running", started_at=clock.now()))
    row_of(change, run=make_run(**just_now))
    row_of(change)

    assert testing_later.look() == 0
    assert TestRun.objects.filter(outcome="").count() == 3


def test_tests_that_no_worker_took_are_no_answer_unless_their_bell_hangs(project):
    change = project.change()
    long_ago = clock.now() - dt.timedelta(hours=1)
    lost = row_of(change, started_at=long_ago)
    waiting = testing_later.ask(change, SOMEBODY, "echo waiting")
    TestRun.objects.filter(pk=waiting.pk).update(started_at=long_ago)

    assert testing_later.look() == 1

    lost.refresh_from_db()
    waiting.refresh_from_db()
    assert (lost.outcome, waiting.outcome) == ("not_run", "")


def test_what_a_worker_cannot_run_says_why(project, monkeypatch):
    change = project.change()
    row = testing_later.ask(change, SOMEBODY, "true")
    project.rule("nonsense = 1\n")

    assert testing_later.work(row.pk) == "refused"
    row.refresh_from_db()
    assert (row.outcome, "nonsense" in row.reason) == ("not_run", True)
    assert testing_later.work(row.pk) == "not ours"


def test_two_workers_with_one_row_run_it_once_and_end_it_once(project, monkeypatch):
    change = project.change()
    row = testing_later.ask(change, SOMEBODY, "true")

    def taken(*_, **__):
        raise testing.Taken("another process runs these tests")

    monkeypatch.setattr(testing, "carried_out", taken)

    assert testing_later.work(row.pk) == "not ours"
    row.refresh_from_db()
    assert row.outcome == ""


# -- accepting ---------------------------------------------------------------------------------
def test_tests_are_run_only_when_nothing_else_is_in_the_way(project, monkeypatch):
    project.rule('test_command = "true"\n')
    change = project.change({"key.py": 'TOKEN = "held-secret-77"\n'})
    monkeypatch.setattr(testing, "test", lambda *_, **__: pytest.fail("tests were run"))

    with pytest.raises(Refusal, match="secret"):
        deciding.accept(change.uid, SOMEBODY, yes())
    with pytest.raises(Refusal, match="read it again"):
        deciding.accept(change.uid, SOMEBODY, yes(expect="0" * 64, reason="x"))


def ended(project, change, outcome: str = "passed") -> TestRun:
    row = project.tested(change, "true", outcome)
    row.refresh_from_db()
    return row


def test_tests_that_gave_no_answer_are_run_again_by_the_next_accept(project, monkeypatch):
    project.rule('test_command = "true"\n')
    change = project.change()
    project.tested(change, "true", "not_run")
    monkeypatch.setattr(testing, "test", lambda *_, **__: ended(project, change))

    assert deciding.accept(change.uid, SOMEBODY, yes()).state == "accepted"


def test_red_tests_are_told_and_nothing_lands(project, monkeypatch):
    project.rule('test_command = "true"\n')
    change = project.change()
    monkeypatch.setattr(testing, "test", lambda *_, **__: ended(project, change, "failed"))

    with pytest.raises(Refusal, match="failed"):
        deciding.accept(change.uid, SOMEBODY, yes())
    change.refresh_from_db()
    assert change.state == "review"


def test_a_change_that_was_revised_while_its_tests_ran_is_not_accepted_on_them(
    project, monkeypatch
):
    project.rule('test_command = "true"\n')
    change = project.change()

    def tested(*_, **__):
        row = ended(project, change)
        gate.revise(change.uid, SOMEBODY, "more", owner=OWNER, lease_s=30)
        project.attempt(change, {"new.py": "y = 2\n"})
        return row

    monkeypatch.setattr(testing, "test", tested)

    with pytest.raises(gate.TestsNeeded):
        deciding.accept(change.uid, SOMEBODY, yes())
