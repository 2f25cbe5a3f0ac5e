"""The queue is a doorbell: one clock, bells that ring with their transaction, no other way in."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django_q.models import OrmQ, Schedule

from runs import bells, clock, lifecycle, queue, tasks
from runs.console import Silent
from runs.models import Run
from runs.models.run import RING_AGAIN_S
from runs.order import Order
from runs.reconcile import reconcile
from sanduk_site.checks import check_queue
from tests.factories import make_run

pytestmark = pytest.mark.django_db


class Undone(Exception):
    pass


def _rung_and_undone() -> None:
    with transaction.atomic():
        queue.ring("runs.tasks.execute", 2, cluster=queue.RUNS, limit_s=60)
        raise Undone


def test_a_bell_rings_with_the_transaction_that_made_its_row_or_not_at_all():
    with transaction.atomic():
        queue.ring("runs.tasks.execute", 1, cluster=queue.RUNS, limit_s=60)
    with pytest.raises(Undone):
        _rung_and_undone()

    (row,) = OrmQ.objects.all()
    assert row.key == "runs"
    assert row.task["args"] == (1,)
    assert row.task["timeout"] == 60 + queue.BACKSTOP_S
    assert row.task["ack_failure"] is True
    assert row.task["save"] is False
    assert (queue.waiting("runs"), queue.waiting("sanduk")) == (1, 0)


def test_there_is_exactly_one_clock_whatever_was_put_beside_it():
    """A schedule in there may call any function with any arguments."""
    Schedule.objects.create(func="os.system", args="'true'")
    for _ in range(2):
        queue.keep_clock("assistants.working.tick")

    (row,) = Schedule.objects.all()
    assert (row.func, row.args, row.minutes, row.repeats) == ("assistants.working.tick", "0", 1, -1)


def test_the_admin_shows_nothing_of_the_queues_own_tables(client):
    client.force_login(User.objects.create_superuser("root"))

    assert "django_q" not in client.get("/admin/").content.decode()
    assert client.get("/admin/django_q/schedule/add/").status_code == 404


def test_the_settings_as_they_are_have_no_trap():
    assert check_queue() == []


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"retry": 300}, "retry must be longer"),
        ({"timeout": None}, "retry must be longer"),
        ({"max_attempts": 0}, "for ever"),
        ({"ack_failures": False}, "for ever"),
        ({"guard_cycle": 0.3}, "guard_cycle"),
        ({"catch_up": True}, "catch up"),
        ({"sync": True}, "synchronous"),
        ({"cluster_name": "other"}, "cluster_name"),
        ({"ALT_CLUSTERS": {"runs": {"scheduler": True}}}, "one is enough"),
        ({"ALT_CLUSTERS": {"runs": {"scheduler": False, "retry": 5}}}, "retry must be longer"),
    ],
)
def test_a_setting_that_is_a_trap_is_an_error(settings, changed, says):
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, **changed}

    found = check_queue()

    assert {each.id for each in found} == {"sanduk.E005"}
    assert says in " ".join(each.msg for each in found)


def test_a_run_that_is_over_or_somebody_elses_is_left_alone():
    for state in ("ended", "running"):
        assert tasks.execute(make_run(state=state).pk) == "not ours"
    assert tasks.execute(10**9) == "not ours"


def test_a_queued_run_that_cannot_be_planned_ends_as_refused():
    run = make_run(order=Order(task="x", provider="nobody").stored())

    assert tasks.execute(run.pk) == "refused"
    run.refresh_from_db()
    assert (run.state, run.outcome, run.exit_code) == ("ended", "refused", 2)
    assert "there is no provider 'nobody'" in run.reason


def test_a_queued_run_is_claimed_and_executed_once(tmp_path: Path, monkeypatch, state):
    order = Order(
        task="look", agent="pi", provider="rehearsal", runtime="docker", workdir=str(tmp_path / "w")
    )
    run = make_run(order=order.stored(), workspace=str(tmp_path / "w"))
    seen = []

    def execute(run: Run, plan: object, console: Silent) -> Run:
        seen.append(run.state)
        run.outcome = "succeeded"
        return run

    monkeypatch.setattr(lifecycle, "execute", execute)

    assert [tasks.execute(run.pk), tasks.execute(run.pk)] == ["succeeded", "not ours"]
    assert seen == ["starting"]


def test_a_stop_outside_of_a_run_ends_the_task_and_not_its_worker(monkeypatch):
    def told(number: int) -> str:
        raise SystemExit(0)

    monkeypatch.setattr(tasks, "_executed", told)

    assert tasks.execute(1) == "stopped"


def test_bells_are_rung_in_the_transaction_of_the_run():
    run = make_run(order=Order(task="x", timeout_s=120).stored())

    tasks.enqueue(run)

    assert OrmQ.objects.get().task["timeout"] == 120 + queue.BACKSTOP_S


# -- bells that were lost -----------------------------------------------------------------------
def _enqueued(ago_s: float = RING_AGAIN_S + 1) -> Run:
    """A run whose bell was rung so long ago."""
    run = make_run(order=Order(task="x").stored())
    tasks.enqueue(run)
    rung_at = clock.now() - dt.timedelta(seconds=ago_s)
    Run.objects.filter(pk=run.pk).update(rung_at=rung_at)
    return run


def test_a_run_whose_bell_was_lost_is_rung_for_again_once(state):
    run = _enqueued()
    OrmQ.objects.all().delete()

    assert reconcile().rung == [run.uid]
    assert reconcile().rung == []

    (bell,) = OrmQ.objects.all()
    assert (bell.key, bell.task["func"], bell.task["args"]) == ("runs", bells.EXECUTE, (run.pk,))


def test_a_bell_that_still_hangs_there_is_not_doubled_however_long_nobody_comes(state):
    run = _enqueued()

    for _ in range(3):
        assert reconcile().rung == []
        Run.objects.filter(pk=run.pk).update(rung_at=clock.now() - dt.timedelta(hours=1))

    assert OrmQ.objects.count() == 1


def test_a_bell_that_died_in_the_memory_of_a_worker_is_rung_again(state):
    run = _enqueued()
    OrmQ.objects.update(lock=clock.now() + dt.timedelta(days=9))

    assert bells.ring_again() == [run.uid]
    assert OrmQ.objects.count() == 2


@pytest.mark.parametrize("ago_s", [0, RING_AGAIN_S - 30])
def test_a_bell_of_just_now_is_given_time(ago_s):
    _enqueued(ago_s)
    OrmQ.objects.all().delete()

    assert bells.ring_again() == []


def test_a_run_that_no_worker_was_asked_for_and_one_that_is_over_are_not_rung_for():
    make_run()
    for over in ("ended", "running"):
        make_run(state=over, rung_at=clock.now() - dt.timedelta(hours=1))

    assert bells.ring_again() == []
    assert not OrmQ.objects.exists()


def test_two_that_look_at_once_ring_once():
    run = _enqueued()

    assert [Run.objects.ring(run.pk), Run.objects.ring(run.pk)] == [True, False]


def test_a_row_of_the_queue_that_nobody_can_read_hides_no_lost_bell():
    run = _enqueued()
    OrmQ.objects.update(payload="not signed by us")

    assert bells.ring_again() == [run.uid]


def test_a_queued_run_whose_directory_is_taken_ends_as_refused(tmp_path: Path, state):
    order = Order(
        task="look", agent="pi", provider="rehearsal", runtime="docker", workdir=str(tmp_path / "w")
    )
    make_run(state="running", workspace=str(tmp_path / "w"), uid="aaaaaaaaaaaa")
    run = make_run(order=order.stored(), workspace=str(tmp_path / "w"))

    assert tasks.execute(run.pk) == "refused"

    run.refresh_from_db()
    assert (run.state, run.outcome) == ("ended", "refused")
    assert "aaaaaaaaaaaa" in run.reason


def test_a_run_that_sanduk_cannot_execute_is_not_queued_for_ever(monkeypatch):
    def broken(order: Order) -> None:
        raise ZeroDivisionError

    run = make_run(order=Order(task="x").stored())
    monkeypatch.setattr(tasks, "make_plan", broken)

    with pytest.raises(ZeroDivisionError):
        tasks.execute(run.pk)

    run.refresh_from_db()
    assert (run.outcome, run.reason) == ("refused", "sanduk itself failed: ZeroDivisionError")
