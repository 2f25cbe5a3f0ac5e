"""`run --detach` beside a worker: the worker executes it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.engine.running import DONE, READY, Installation, eventually

pytestmark = [pytest.mark.engine, pytest.mark.timeout(200)]


def executor(docker: Installation) -> list[str]:
    """The words of the process that holds the newest run."""
    pid = docker.row["lease_owner"].split("/")[3]
    return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")


def test_a_detached_run_is_executed_by_the_worker_that_is_up(docker: Installation):
    worker = docker.start("worker").until("the worker is up")
    script = f"{READY}; sleep 3; echo found it > REPORT.md; {DONE}"

    done = docker.sanduk(*docker.words(script, "--detach"))
    uid = done.out.strip()
    assert (done.code, done.err, docker.row["uid"]) == (0, "", uid)
    eventually(lambda: docker.row["state"] == "running", 60)
    assert executor(docker)[-1] == "runs"  # of the cluster of that name
    eventually(lambda: docker.row["state"] == "ended", 60)

    assert docker.row["outcome"] == "succeeded"
    assert docker.row["report"] == "found it\n"
    # what the worker was not given stays with a process of its own
    also = docker.sanduk(*docker.words(script, "--detach", "--env", "WORD"), WORD="here")
    assert also.code == 0
    eventually(lambda: docker.row["state"] == "running", 60)
    assert executor(docker)[-2:] == ["execute", also.out.strip()]
    eventually(lambda: docker.row["state"] == "ended", 60)
    assert docker.row["outcome"] == "succeeded"
    assert worker.signal(signal.SIGTERM).end().code == 0
    docker.nothing_left(within_s=5)


def test_a_detached_run_whose_worker_is_killed_is_ended_and_one_that_waits_is_executed_later(
    docker: Installation,
):
    worker = docker.start("worker", SANDUK_MAX_RUNS="1").until("the worker is up")
    first = docker.sanduk(*docker.words(f"{READY}; sleep 300", "--detach")).out.strip()
    eventually(lambda: docker.row["state"] == "running", 60)
    pid = int(docker.row["lease_owner"].split("/")[3])
    other = docker.ground / "other"
    other.mkdir()
    if os.geteuid() == 0:
        os.chown(other, 1000, 1000)
    words = docker.words(DONE, "--detach", "--workdir", str(other))
    second = docker.sanduk(*words).out.strip()
    assert docker.row["state"] == "queued"
    worker.signal(signal.SIGKILL).end()
    os.kill(pid, signal.SIGKILL)

    again = docker.start("worker").until("the worker is up")
    eventually(lambda: {row["state"] for row in docker.rows()} == {"ended"}, 120)

    assert {row["uid"]: row["outcome"] for row in docker.rows()} == {
        first: "interrupted",
        second: "succeeded",
    }
    assert again.signal(signal.SIGTERM).end().code == 0
    docker.nothing_left(within_s=5)
