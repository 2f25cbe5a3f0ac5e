"""Attempts that are left to a worker: made, revised, killed and finished."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.engine.changing import END, Changing
from tests.engine.running import Installation, eventually

pytestmark = [pytest.mark.engine, pytest.mark.timeout(280)]


@pytest.fixture
def changing(docker: Installation) -> Changing:
    return Changing(docker)


def asked(changing: Changing, script: str) -> str:
    words = changing.words(script + END)
    uid: str = changing.do("ask", str(changing.path), *words)["uid"]
    return uid


def test_a_worker_makes_what_it_is_given_and_revises_it(changing):
    docker = changing.made
    first = asked(changing, "echo one > one")
    assert changing.do("give", first)["given"] is False  # nobody is there
    worker = docker.start("worker").until("the worker is up")

    assert changing.do("give", first)["given"] is True
    eventually(lambda: changing.row["state"] == "review", 90)
    task = f"cat one > two{END}"
    assert changing.do("give-revision", first, task)["given"] is True
    eventually(lambda: len(changing.rows("changes_attempt")) == 2, 90)

    assert changing.row["wanted_task"] == ""
    assert [each["task"] for each in changing.rows("changes_attempt")][1] == task
    assert worker.signal(signal.SIGTERM).end().code == 0
    assert changing.clones() == []
    docker.nothing_left(within_s=5)


def test_a_killed_executor_of_a_worker_is_noticed_within_a_minute(changing):
    docker = changing.made
    worker = docker.start("worker").until("the worker is up")
    uid = asked(changing, "sleep 300")
    assert changing.do("give", uid)["given"] is True
    eventually(lambda: docker.rows() and docker.row["state"] == "running", 90)

    pid = int(changing.row["lease_owner"].split("/")[3])
    assert Path(f"/proc/{pid}").exists()
    os.kill(pid, signal.SIGKILL)

    eventually(lambda: changing.row["state"] == "failed", 75)
    assert changing.clones() == []
    assert worker.signal(signal.SIGTERM).end().code == 0
    docker.nothing_left(within_s=5)
