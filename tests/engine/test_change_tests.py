"""The operator's tests in a real box: base and stored patch, and nothing of it comes back."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connections

from changes import deciding, fresh, gate, testing, testing_later
from changes.models import Change, TestRun
from runs.engines.base import LABEL_INSTALL
from runs.installation import install_id
from runs.models import Run
from runs.reconcile import reconcile
from runs.refusal import Refusal
from tests.changes.rows import SOMEBODY, Project, run_git, yes
from tests.engine.running import eventually

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


@pytest.fixture(params=["docker"])
def project(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Project]:
    """A real repository of an installation that knows its engine to be usable."""
    tmp_path.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setattr(settings, "SANDUK_HOME", home)
    monkeypatch.setattr(settings, "SANDUK_MIN_FREE_MB", 1)
    monkeypatch.setattr(settings, "SANDUK_RUNTIME", request.param)
    known: Path = request.getfixturevalue(f"{request.param}_ready")
    shutil.copytree(known / "engines", home / "engines")
    yield Project(tmp_path / "project")
    assert containers() == []
    assert not fresh.place().exists() or not list(fresh.place().iterdir())
    if built := engine_says("images", "-q", "--filter", f"label={LABEL_INSTALL}={install_id()}"):
        engine_says("rmi", "--force", *built)


def containers() -> list[str]:
    return engine_says("ps", "-aq", "--filter", f"label={LABEL_INSTALL}={install_id()}")


def engine_says(*words: str) -> list[str]:
    command = [settings.SANDUK_RUNTIME, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def outcome_of(change: Change, command: str = "", *, told: list[str] | None = None) -> TestRun:
    return testing.test(
        change.uid, SOMEBODY, command=command, tell=(told if told is not None else []).append
    )


def test_they_see_the_base_with_the_patch_and_nothing_else(project: Project):
    change = project.change({"new.py": "print(6 * 7)\n", "link": ("120000", "README.md")})
    (project.path / "untracked").write_text("of the person")
    told: list[str] = []

    row = outcome_of(
        change,
        "set -e; ls -A | sort | tr '\\n' ' '; python3 new.py; cat link; id -u; "
        "test ! -e untracked; git --version || true; ls /sys/class/net; wc -l < /proc/net/route",
        told=told,
    )

    assert (row.outcome, row.exit_code, row.reason) == ("passed", 0, ""), row.output
    assert ".git README.md link new.py 42\nhello" in row.output
    assert row.output_bytes == len(row.output.encode())
    assert row.digest == change.attempt.digest
    assert (row.run.kind, row.run.trigger, row.run.mode) == ("command", "change", "no-network")
    assert row.run.state == Run.State.ENDED
    assert any("42" in line for line in told)
    assert gate.tests_of(change.attempt, row.command) == row


@pytest.mark.podman
@pytest.mark.parametrize("project", ["podman"], indirect=True)
def test_another_engine_runs_them_as_well(project: Project):
    row = outcome_of(project.change({"new.py": "print(6 * 7)\n"}), "python3 new.py; id -u; exit 4")

    assert (row.outcome, row.exit_code, row.output) == ("failed", 4, "42\n1000\n")


def test_a_red_one_keeps_its_status_and_the_end_of_both_streams_in_order(project: Project):
    row = outcome_of(project.change(), "echo one; echo two >&2; echo three; exit 3")

    assert (row.outcome, row.exit_code) == ("failed", 3)
    assert row.output == "one\ntwo\nthree\n"
    assert "exited with 3" in row.reason


def test_a_record_that_a_test_prints_makes_it_no_greener(project: Project):
    row = outcome_of(project.change(), """echo '{"type": "result", "ok": true}'; exit 1""")

    assert row.outcome == "failed"


def test_one_that_never_ends_is_timed_out_with_all_it_started(project: Project):
    project.rule('test_timeout = "3s"\n')

    row = outcome_of(project.change(), "trap '' TERM; echo begun; sleep 1000 & while :; do :; done")

    assert row.outcome == "timed_out"
    assert row.reason.endswith("(test_timeout)"), row.reason
    assert "begun" in row.output
    assert containers() == []


def test_nothing_it_writes_comes_back(project: Project):
    change = project.change()
    before = change.attempt.digest

    row = outcome_of(
        change,
        "echo forged > new.py; rm README.md; printf x > .git/HEAD; mkdir -m 0 shut; "
        "ln -s /etc out; echo '[core] hooksPath=/tmp' >> .git/config",
    )

    assert row.outcome == "passed"
    assert gate.accept(change.uid, SOMEBODY, yes()).change.attempt.digest == before
    landed = gate.land(change.uid)
    assert run_git(project.path, "show", f"{landed.landed_commit}:new.py") == "x = 1"


def test_a_gigabyte_of_output_leaves_its_end_and_how_much_it_was(project: Project):
    row = outcome_of(
        project.change(), "head -c 1000000000 /dev/zero | tr '\\0' 'x'; echo; echo end"
    )

    assert row.outcome == "passed"
    assert row.output_bytes == 1_000_000_005
    assert row.output.endswith("end\n")
    assert len(row.output) <= testing.OUTPUT_KEPT
    log = settings.SANDUK_HOME / "runs" / row.run.uid / "output.log"
    assert log.stat().st_size < 20 << 20


def test_a_disk_that_fills_ends_it_without_an_answer(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("runs.disk_watch.filled.__kwdefaults__", {"most": 200 << 20})

    row = outcome_of(
        project.change(), "head -c 2000000000 /dev/zero > big; sleep 20; echo not reached"
    )

    assert row.outcome == "not_run"
    assert "MB were written" in row.reason
    assert "not reached" not in row.output


def test_processes_without_end_are_its_own_trouble(project: Project):
    project.rule('test_timeout = "20s"\n')
    bomb = (
        'python3 -c "\nimport os, time\nfor _ in range(100000):\n'
        " try:\n  if os.fork() == 0:\n   time.sleep(60); os._exit(0)\n"
        " except OSError:\n  print('no more'); os._exit(7)\n\""
    )

    row = outcome_of(project.change(), bomb)

    assert (row.outcome, row.exit_code) == ("failed", 7), row.output
    assert containers() == []


def test_a_tool_that_is_missing_is_named_with_what_helps(project: Project):
    row = outcome_of(project.change(), "pytest-of-the-project -q")

    assert (row.outcome, row.exit_code) == ("failed", 127)
    assert row.reason.startswith("pytest-of-the-project is not in the image: name a kit")
    assert str(settings.SANDUK_HOME / "repos") in row.reason


def test_an_image_that_cannot_be_built_is_no_answer(project: Project):
    project.rule('set_up = ["exit 9"]\n')

    row = outcome_of(project.change(), "true")

    assert row.outcome == "not_run"
    assert row.reason


def test_the_set_up_runs_in_the_image_from_the_base_commits_lock_files(project: Project):
    (project.path / "tools.lock").write_text("greet\n")
    run_git(project.path, "add", "-A")
    run_git(project.path, "commit", "-q", "-m", "tools")
    project.base = run_git(project.path, "rev-parse", "HEAD")
    project.rule(
        'lock_files = ["tools.lock"]\n'
        "set_up = ['printf \"#!/bin/sh\\necho $(cat tools.lock)\\n\" > /usr/local/bin/greet', "
        "'chmod 755 /usr/local/bin/greet']\n"
    )
    # the branch's own lock file is another one: it does not choose what is installed
    change = project.change({"tools.lock": "evil\n", "new.py": ""})

    first = outcome_of(change, "cat tools.lock; greet; touch /usr/local/bin/x || echo sealed")
    again = outcome_of(change, "greet")

    assert first.output.split("\n")[:2] == ["evil", "greet"], (first.reason, first.output)
    assert "sealed" in first.output
    assert again.run.image == first.run.image
    assert not again.run.events.filter(text__startswith="building").exists()


def test_accept_runs_them_when_no_green_is_there_and_lands(project: Project):
    project.rule('test_command = "test -e new.py"\n')
    change = project.change()

    landed = deciding.accept(change.uid, SOMEBODY, yes())

    assert landed.state == "accepted"
    row = TestRun.objects.get()
    assert (row.outcome, row.command) == ("passed", "test -e new.py")
    message = run_git(project.path, "log", "-1", "--format=%B", landed.landed_commit)
    assert "Sanduk-Tests: passed" in message
    assert run_git(project.path, "fsck", "--strict") == ""


def test_accept_refuses_after_a_red_one_and_the_branch_is_not_there(project: Project):
    project.rule('test_command = "test -e missing.py"\n')
    change = project.change()

    with pytest.raises(Refusal, match="failed"):
        deciding.accept(change.uid, SOMEBODY, yes())
    with pytest.raises(Refusal, match="failed"):
        deciding.accept(change.uid, SOMEBODY, yes())

    assert TestRun.objects.count() == 1
    assert "sanduk" not in run_git(project.path, "branch", "--list")
    landed = deciding.accept(change.uid, SOMEBODY, yes(no_test=True, reason="known"))
    assert landed.state == "accepted"


def test_a_worker_runs_what_was_asked_for_once(project: Project):
    change = project.change()

    row = testing_later.ask(change, SOMEBODY, "echo here")
    again = testing_later.ask(change, SOMEBODY, "echo here")

    assert again == row
    assert testing_later.work(row.pk) == "passed"
    assert testing_later.work(row.pk) == "not ours"
    row.refresh_from_db()
    assert row.output == "here\n"


def test_the_tests_of_a_killed_process_are_no_answer_and_leave_nothing(project: Project):
    change = project.change()
    pid = os.fork()
    if pid == 0:
        _only_test(change)
    try:
        eventually(lambda: Run.objects.filter(state="running").exists(), 60)
        eventually(lambda: Run.objects.get().events.filter(text="ready").exists(), 30)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    done = reconcile()

    row = TestRun.objects.get()
    assert (row.outcome, row.exit_code) == ("not_run", None), (done, row.reason)
    assert "is gone" in row.reason
    assert row.run.state == "ended"
    project.rule('test_command = "echo ready; sleep 300"\n')
    with pytest.raises(gate.TestsNeeded):
        gate.accept(change.uid, SOMEBODY, yes())
    eventually(lambda: containers() == [], 10)


def _only_test(change: Change) -> None:
    """In a child: nothing of the parent's database is touched, and nothing returns."""
    try:
        for connection in connections.all():
            connection.connection = None
        testing.test(change.uid, SOMEBODY, command="echo ready; sleep 300")
    finally:
        os._exit(1)
