"""The worker through kills and stops: every slot accounted for, nothing doubled, nothing left."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

from tests.engine.assistants import Home, reporting
from tests.engine.running import Going, Installation, eventually

pytestmark = [pytest.mark.engine, pytest.mark.timeout(400)]

SLOW = """echo '{"type": "text", "text": "ready"}'; sleep 300"""


@pytest.fixture
def home(docker: Installation) -> Home:
    return Home(docker)


def begin(home: Home, **env: str) -> Going:
    return home.made.start("worker", **env).until("the worker is up")


def executing(home: Home) -> int:
    """The pid of the process that executes the only wakeup, once its container runs."""
    eventually(lambda: "running" in [row["state"] for row in home.made.rows()], 60)
    (row,) = [row for row in home.wakeups() if row["state"] == "running"]
    return int(row["lease_owner"].split("/")[3])


def outcomes(home: Home) -> list[tuple[str, str]]:
    return [(row["trigger"], row["outcome"] or row["state"]) for row in home.wakeups()]


def parent(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])


def children(pid: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if parent(int(folder.name)) == pid:
                found.append(int(folder.name))
    return sorted(found)


def main_process(going: Going, name: str) -> int:
    """Of one of the worker's clusters."""
    for pid in children(going.pid):
        if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[-2] == name.encode():
            return pid
    raise AssertionError(f"there is no cluster {name}")


def cluster(going: Going, name: str) -> tuple[int, int, list[int]]:
    """The main process of one that is up, its sentinel, and its two workers."""
    main = main_process(going, name)
    eventually(lambda: children(main), 20)
    (sentinel,) = children(main)
    eventually(lambda: len(children(sentinel)) >= 4, 20)
    return main, sentinel, children(sentinel)[:2]


def runs_again(home: Home) -> None:
    eventually(lambda: home.items(), 90)
    assert [item["body"] for item in home.items()] == ["second try"]
    assert home.waiting_messages() == []


def test_a_worker_executes_what_is_due_and_ends_with_all_it_started(home: Home):
    home.add("daily", reporting("done"))
    going = begin(home)

    home.due("daily")
    eventually(lambda: home.items(), 60)

    assert going.signal(signal.SIGTERM).end().code == 0
    assert outcomes(home) == [("schedule", "succeeded")]
    home.made.nothing_left(within_s=5)


def test_a_second_worker_is_refused_and_a_tick_beside_it_doubles_nothing(home: Home):
    home.add("daily", reporting("once"))
    going = begin(home)
    second = home.made.sanduk("worker")
    assert second.code == 2
    assert "another worker" in second.err

    home.due("daily")
    ticks = [home.made.start("tick") for _ in range(3)]
    assert [each.end().code for each in ticks] == [0, 0, 0]
    eventually(lambda: home.items(), 60)

    assert going.signal(signal.SIGTERM).end().code == 0
    assert outcomes(home) == [("schedule", "succeeded")]
    assert len(home.made.rows()) == 1


@pytest.mark.parametrize("victim", ["executing", "main", "sentinel"])
def test_whichever_process_is_killed_the_wakeup_comes_again_by_itself(home: Home, victim):
    place = home.add("daily", SLOW)
    assert home.made.sanduk("tell", "daily", "# hello").code == 0
    going = begin(home)
    home.due("daily")
    pid = executing(home)
    (place / "brief.md").write_text(reporting("second try"))

    sentinel = parent(pid)
    chosen = {"executing": pid, "sentinel": sentinel, "main": parent(sentinel)}[victim]
    assert chosen == pid or main_process(going, "runs") in (chosen, parent(sentinel))
    os.kill(chosen, signal.SIGKILL)

    runs_again(home)
    assert outcomes(home) == [("schedule", "interrupted"), ("again", "succeeded")]
    assert going.signal(signal.SIGTERM).end().code == 0
    home.made.nothing_left(within_s=5)


def test_a_killed_worker_leaves_no_cluster_behind_and_the_next_goes_on(home: Home):
    place = home.add("daily", SLOW)
    going = begin(home)
    home.due("daily")
    pid = executing(home)
    mains = [main_process(going, name) for name in ("sanduk", "runs")]

    going.signal(signal.SIGKILL).end()
    (place / "brief.md").write_text(reporting("second try"))
    os.kill(pid, signal.SIGKILL)  # else the cluster waits for the end of what it does
    eventually(lambda: not any(Path(f"/proc/{main}/cwd").exists() for main in mains), 30)

    again = begin(home)
    runs_again(home)
    assert again.signal(signal.SIGTERM).end().code == 0
    home.made.nothing_left(within_s=5)


def test_a_stop_interrupts_what_is_long_and_leaves_it_waiting(home: Home):
    home.add("daily", SLOW)
    going = begin(home, SANDUK_DRAIN_SECONDS="1")
    home.due("daily")
    executing(home)

    assert going.signal(signal.SIGTERM).end().code == 0

    assert outcomes(home) == [("schedule", "interrupted"), ("again", "waiting")]
    assert home.made.row["outcome"] == "interrupted"
    home.made.nothing_left(within_s=5)


def test_a_stop_lets_what_is_short_end_by_itself(home: Home):
    home.add(
        "daily", f"""echo '{{"type": "text", "text": "ready"}}'; sleep 4\n{reporting("in time")}"""
    )
    going = begin(home)
    home.due("daily")
    executing(home)

    assert going.signal(signal.SIGTERM).end().code == 0
    assert outcomes(home) == [("schedule", "succeeded")]


def test_an_idle_worker_that_is_killed_jams_the_cluster_only_until_it_is_seen(
    home: Home, tmp_path: Path
):
    """django-q2 alone never takes another task then, and nothing says so."""
    steer = tmp_path / "clock"
    steer.write_text("0")
    home.add("daily", reporting("second try"))
    going = begin(home, SANDUK_CLOCK_FILE=str(steer))
    _, _, workers = cluster(going, "runs")
    for worker in workers:
        os.kill(worker, signal.SIGKILL)

    home.due("daily")
    eventually(lambda: home.wakeups() and home.wakeups()[0]["rung_at"], 30)
    time.sleep(4)
    if not home.items():
        steer.write_text("150")

    runs_again(home)
    assert going.signal(signal.SIGTERM).end().code == 0
    home.made.nothing_left(within_s=5)


@pytest.mark.parametrize("victim", ["main", "sentinel", "idle workers"])
def test_a_control_cluster_that_is_killed_or_jammed_looks_again(
    home: Home, tmp_path: Path, victim: str
):
    steer = tmp_path / "clock"
    steer.write_text("0")
    home.add("daily", reporting("second try"))
    going = begin(home, SANDUK_CLOCK_FILE=str(steer))
    main, sentinel, workers = cluster(going, "sanduk")
    killed = {"main": [main], "sentinel": [sentinel], "idle workers": workers}
    for pid in killed[victim]:
        os.kill(pid, signal.SIGKILL)

    home.due("daily")
    time.sleep(4)
    if not home.items():
        steer.write_text("200")

    runs_again(home)
    assert outcomes(home) == [("schedule", "succeeded")]
    assert going.signal(signal.SIGTERM).end().code == 0
    home.made.nothing_left(within_s=5)
