"""Several changes at once: so many at a time, one budget, and one Ctrl-C for all of them."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from tests.engine.changing import END, Changing
from tests.engine.running import Installation

pytestmark = pytest.mark.engine


@pytest.fixture
def changing(docker: Installation) -> Changing:
    return Changing(docker, {"shared.txt": b"one\ntwo\nthree\n"})


def words(changing: Changing, scripts: list[str], **order) -> tuple[str, str, str]:
    _, asked = changing.words("", **order)
    return str(changing.path), json.dumps([f"{script}{END}" for script in scripts]), asked


def test_four_tasks_are_made_two_at_a_time_and_the_two_that_conflict_are_told(changing):
    scripts = [
        "echo a > a", "echo b > b", "sed -i s/two/2/ shared.txt", "sed -i s/two/zwei/ shared.txt",
    ]  # fmt: skip
    said = changing.do("batch", *words(changing, scripts, max_parallel=2), limit_s=280)

    assert [each["state"] for each in said["changes"]] == ["review"] * 4, said
    runs = sorted(changing.made.rows(), key=lambda run: run["claimed_at"])
    for run in runs:  # never three at one time
        beside = [
            other for other in runs
            if other["claimed_at"] <= run["claimed_at"] < (other["ended_at"] or "9")
        ]  # fmt: skip
        assert len(beside) <= 2
    conflicts = changing.do("conflicts")["conflicts"]
    third, fourth = (each["uid"] for each in said["changes"][2:])
    assert conflicts == {third: {fourth: ["shared.txt"]}, fourth: {third: ["shared.txt"]}}
    assert changing.clones() == []
    assert changing.host() == changing.before


def test_one_that_fails_spoils_no_other(changing):
    scripts = ["exit 7", "echo b > b"]
    said = changing.do("batch", *words(changing, scripts, total_budget_usd=1.0), limit_s=200)

    assert [each["state"] for each in said["changes"]] == ["failed", "review"], said
    assert sum(each["reserved"] for each in said["changes"]) <= 1.0


def test_ctrl_c_ends_all_of_it_promptly(changing):
    scripts = ["echo a > a; sleep 100", "echo b > b; sleep 100", "echo c > c"]
    process = changing.start("batch", *words(changing, scripts, max_parallel=2))
    deadline = time.monotonic() + 90
    while sum(run["state"] == "running" for run in changing.made.rows() if run) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    said = changing.end(process, limit_s=60)

    assert [each["state"] for each in said["changes"]] == ["failed"] * 3, said
    assert said["changes"][2]["reason"] == "cancelled before it began"
    assert changing.clones() == []
    changing.made.nothing_left(within_s=5)
