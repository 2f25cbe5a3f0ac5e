"""A change whose process is killed, stopped or cancelled at any step ends, and nothing stays."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.engine.changing import END, Changing
from tests.engine.running import Installation

pytestmark = pytest.mark.engine
SLOW = "echo x > x; sleep 60"
# where the process is killed: a function of ours that it is about to enter
STEPS = (
    "changes.base.of",
    "changes.clone.make",
    "changes.skills.write_into",
    "changes.attempt.start_here",
    "changes.attempt.execute",
    "changes.results.take",
    "changes.tree.read",
    "changes.attempts.write",
    "changes.artifacts.keep",
)


@pytest.fixture
def changing(docker: Installation) -> Changing:
    return Changing(docker)


@pytest.mark.parametrize("step", STEPS)
def test_killed_before_any_step_it_is_ended_by_the_next_look(changing, step):
    process = changing.begin("echo x > x", KILL_AT=step)
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert changing.row["state"] == "running"

    changing.do("reconcile")

    row = changing.row
    assert (row["state"], row["lease_owner"], row["attempt_id"]) == ("failed", "", None)
    assert "is gone" in row["reason"]
    assert changing.clones() == []
    assert changing.host() == changing.before
    changing.made.nothing_left(within_s=5)
    assert {run["state"] for run in changing.made.rows()} <= {"ended"}


def test_killed_while_the_agent_works_nothing_goes_on(changing):
    process = changing.begin(SLOW)
    changing.until(state="running")
    deadline = time.monotonic() + 60
    while not any(run["state"] == "running" for run in changing.made.rows()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=20)

    changing.do("reconcile")

    assert changing.row["state"] == "failed"
    assert changing.clones() == []
    changing.made.nothing_left(within_s=5)


def test_a_killed_revision_leaves_the_attempt_before_it(changing):
    first = changing.make("echo one > one")
    process = changing.start(
        "revise", first["uid"], f"echo two > two{END}", KILL_AT="changes.tree.read"
    )
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL

    changing.do("reconcile")

    row = changing.row
    assert row["state"] == "review"
    assert [each["number"] for each in changing.rows("changes_attempt")] == [1]
    landed = changing.do("accept", first["uid"], "")
    assert landed["state"] == "accepted"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_run_ends_it_promptly(changing, number):
    process = changing.begin(SLOW)
    deadline = time.monotonic() + 60
    while not any(run["state"] == "running" for run in changing.made.rows()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, number)
    said = changing.end(process, limit_s=40)

    assert said["state"] == "failed", said
    assert "stop" in said["reason"], said
    assert changing.clones() == []
    changing.made.nothing_left(within_s=5)


@pytest.mark.parametrize(("often", "state"), [("1", "review"), ("2", "failed")])
@pytest.mark.parametrize(
    "step", ["changes.results.take", "changes.tree.read", "changes.attempts.write"]
)
def test_what_was_made_is_read_to_its_end_unless_it_is_told_twice_to_stop(
    changing, step, often, state
):
    process = changing.begin("echo x > x", STOP_AT=step, STOP_OFTEN=often)
    _, err = process.communicate(timeout=120)

    assert process.returncode == 128 + signal.SIGTERM
    assert err.count(b"once more drops it") == 1
    assert changing.row["state"] == state
    assert len(changing.rows("changes_attempt")) == (1 if state == "review" else 0)
    assert changing.clones() == []
    changing.made.nothing_left(within_s=5)


def test_a_session_whose_terminal_goes_away_still_comes_to_the_gate(changing):
    docker = changing.made
    going = docker.start(
        "change", "shell", "--repo", str(changing.path), "--agent", "scripted-offline",
        "--no-network", "--runtime", "docker", stdin=b"echo x > x; sleep 100\n",
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not any(run["state"] == "running" for run in docker.rows()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    place = docker.home / "clones" / changing.row["uid"] / "work" / "x"
    while not place.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for _ in range(2):  # the kernel and the person's shell both say it
        os.kill(going.process.pid, signal.SIGHUP)
    going.process.wait(60)

    row = changing.row
    assert (row["state"], row["kind"]) == ("review", "shell"), row
    assert changing.rows("changes_attempt")[0]["files"] == 1
    assert changing.clones() == []
    docker.nothing_left(within_s=5)


def test_it_can_be_cancelled_from_elsewhere(changing):
    process = changing.begin(SLOW)
    deadline = time.monotonic() + 60
    while not any(run["state"] == "running" for run in changing.made.rows()):
        assert time.monotonic() < deadline
        time.sleep(0.05)

    assert changing.do("cancel", changing.row["uid"])["said"] == "asked"

    said = changing.end(process, limit_s=40)
    assert said["state"] == "failed"
    assert "ben" in said["reason"]
    assert changing.clones() == []
