"""What the worker's clusters do for assistants, and how one that does nothing is seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from django_q.models import OrmQ

from assistants import collaborators, ticking, working
from assistants.config import Config
from assistants.models import Wakeup
from runs import clock, installation, lease, pulse, queue
from runs.locks import held_if_free
from runs.order import Order
from tests.factories import make_assistant, make_run, make_schedule, make_wakeup
from tests.runs.conftest import state

__all__ = ["state"]
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def steer(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    installation.prepare_home()
    file = tmp_path / "clock"
    file.write_text("0")
    monkeypatch.setenv("SANDUK_CLOCK_FILE", str(file))
    return file


def test_a_wakeup_is_rung_for_with_its_own_deadline():
    config = Config(timeout_s=3600, gate_timeout_s=30)
    wakeup = make_wakeup(make_assistant(config=config))

    working.ring(wakeup)

    bell = OrmQ.objects.get()
    assert bell.key == queue.RUNS
    assert bell.task["func"] == "assistants.working.wake"
    assert bell.task["timeout"] == 3630 + queue.BACKSTOP_S


def test_a_look_rings_for_what_is_due_and_for_deliveries():
    make_schedule(next_at=clock.now())

    assert working.tick(0) == "ticked"

    assert [bell.task["func"] for bell in OrmQ.objects.order_by("pk")] == [
        working.WAKE,
        working.DELIVER,
    ]
    assert pulse.age_s("tick") is not None


def test_one_worker_delivers_at_a_time(monkeypatch):
    calls: list[int] = []
    monkeypatch.setattr(collaborators, "deliver_due", lambda: calls.append(1))

    with held_if_free("deliver"):
        assert working.deliver(0) == "busy"
    assert working.deliver(0) == "delivered"
    assert calls == [1]


def test_a_nudge_rings_when_something_is_due_and_not_without_end():
    assert not working.nudge()
    make_schedule(next_at=clock.now())

    for _ in range(20):
        assert working.nudge()

    assert queue.waiting(queue.CONTROL) == working.BELLS_ENOUGH


def test_a_dead_process_is_a_reason_to_look():
    machine, boot, namespace, pid, _ = lease.owner().split("/")
    make_wakeup(state="running", lease_owner=lease.owner())
    assert not working.nudge()
    make_wakeup(state="running", lease_owner=f"{machine}/{boot}/{namespace}/{pid}/1")

    assert working.nudge()


def test_a_cluster_that_looks_at_nothing_is_seen_after_three_minutes(steer: Path):
    watchdog = working.Watchdog()
    pulse.stamp("tick")
    steer.write_text("170")
    assert watchdog.hanging() == {}
    steer.write_text("190")

    assert list(watchdog.hanging()) == [queue.CONTROL]
    assert watchdog.hanging() == {}  # it is given time to come up


def test_a_bell_that_nobody_hears_is_seen_unless_there_is_no_room(steer: Path, settings):
    settings.SANDUK_MAX_RUNS = 1
    watchdog = working.Watchdog()
    make_wakeup(rung_at=clock.now())
    assert watchdog.hanging() == {}
    steer.write_text("130")
    pulse.stamp("tick")

    assert list(watchdog.hanging()) == [queue.RUNS]

    busy = make_wakeup(state="running")
    steer.write_text("400")
    pulse.stamp("tick")
    assert watchdog.hanging() == {}
    Wakeup.objects.filter(pk=busy.pk).update(
        state="ended", outcome="succeeded", ended_at=clock.now(), lease_until=None
    )
    assert watchdog.hanging() == {}  # from now on the bell's time counts


def test_pids_of_this_machine_are_known_from_the_rows():
    make_wakeup(state="running", lease_owner=lease.owner())
    make_wakeup(state="running", lease_owner="nobody")

    assert working.busy_pids() == [int(lease.owner().split("/")[3])]


def test_a_run_that_nobody_hears_of_is_seen_too(steer: Path):
    watchdog = working.Watchdog()
    make_run(rung_at=clock.now())
    assert watchdog.hanging() == {}
    steer.write_text("130")
    pulse.stamp("tick")

    assert watchdog.hanging() == {queue.RUNS: "a wakeup or a run was rung for and nobody came"}


def test_runs_that_workers_were_asked_for_leave_no_room_for_a_wakeup(steer: Path, settings):
    """So what is rung for waits its turn, and its cluster is not taken for a hanging one."""
    settings.SANDUK_MAX_RUNS = 1
    make_run(state="running")  # at a terminal: it takes no worker
    assert ticking.room() == 1
    make_run(state="running", rung_at=clock.now())
    watchdog = working.Watchdog()
    make_wakeup(rung_at=clock.now())
    assert watchdog.hanging() == {}
    steer.write_text("130")
    pulse.stamp("tick")

    assert watchdog.hanging() == {}
    assert ticking.room(ringing_counts=False) == 0


def test_a_run_whose_bell_was_lost_is_a_reason_to_look_once(steer: Path):
    run = make_run(order=Order(task="x").stored(), rung_at=clock.now())
    assert not working.nudge()
    steer.write_text("91")
    assert working.nudge()

    working.tick(0)

    rung = [bell.task["args"] for bell in OrmQ.objects.filter(key=queue.RUNS)]
    assert rung == [(run.pk,)]
    assert not working.nudge()
