"""Every change of a run's state is one conditional UPDATE, and the constraints back it."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import IntegrityError, connections, transaction

from runs import clock
from runs.models import Run
from runs.models.run import EXIT_CODES, Outcome, State
from tests.factories import make_run

OWNER, OTHER = "machine/boot/ns/1/1", "machine/boot/ns/2/2"


def together(*works: Callable[[], object]) -> list[object]:
    """Do all of it at the same moment, each in a thread with a database connection of its own."""
    start = threading.Barrier(len(works))

    def one(work: Callable[[], object]) -> object:
        start.wait(timeout=10)
        try:
            return work()
        except IntegrityError as exc:
            return exc
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(one, works))


@pytest.mark.django_db(transaction=True)
def test_of_many_claimers_exactly_one_wins():
    """nanoclaw#2147: claims carry owner, start time and lease."""
    run = make_run()

    won = together(*(lambda n=n: Run.objects.claim(run.uid, f"owner {n}", 30) for n in range(6)))

    assert won.count(True) == 1
    run.refresh_from_db()
    assert run.state == State.STARTING
    assert run.lease_owner == f"owner {won.index(True)}"
    assert run.lease_until is not None
    assert run.claimed_at is not None


@pytest.mark.django_db(transaction=True)
def test_of_two_runs_in_one_workspace_only_one_can_be_claimed():
    """L-9, happyclaw#181: one live run per writable workspace."""
    runs = [make_run(workspace="/srv/shared") for _ in range(2)]

    found = together(*(lambda r=r: Run.objects.claim(r.uid, OWNER, 30) for r in runs))

    assert sum(each is True for each in found) == 1
    assert sum(isinstance(each, IntegrityError) for each in found) == 1
    assert Run.objects.live().count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_claim_and_a_stop_at_the_same_moment_never_both_take_a_queued_run():
    for _ in range(10):
        run = make_run()

        claimed, stopped = together(
            lambda run=run: Run.objects.claim(run.uid, OWNER, 30),
            lambda run=run: Run.objects.request_stop(run.uid, "anna"),
        )

        run.refresh_from_db()
        if claimed:
            assert (stopped, run.state) == ("asked", State.STARTING)
            assert run.stop_requested_by == "anna"
        else:
            assert (stopped, run.state, run.outcome) == ("cancelled", State.ENDED, "cancelled")


@pytest.mark.django_db(transaction=True)
def test_a_renewal_and_the_reconciler_never_both_win():
    for _ in range(10):
        run = make_run(state="running", lease_owner=OWNER)
        seen = Run.objects.get(pk=run.pk)

        renewed, ended = together(
            lambda run=run: Run.objects.renew(run.uid, OWNER, 30),
            lambda seen=seen: Run.objects.end_lost(seen, "gone"),
        )

        assert renewed != ended


@pytest.mark.django_db
def test_a_cancelled_run_cannot_be_claimed():
    run = make_run()
    Run.objects.request_stop(run.uid, "anna")

    assert not Run.objects.claim(run.uid, OWNER, 30)


@pytest.mark.django_db
def test_only_the_owner_moves_a_run_on():
    run = make_run(state="starting", lease_owner=OWNER)

    assert not Run.objects.mark_running(run.uid, OTHER)
    assert not Run.objects.renew(run.uid, OTHER, 30)
    assert not Run.objects.mark_ending(run.uid, OTHER, outcome="failed")
    assert not Run.objects.mark_ended(run.uid, OTHER, outcome="failed")
    run.refresh_from_db()
    assert run.state == State.STARTING
    assert run.outcome == ""


@pytest.mark.django_db
def test_a_run_goes_forward_and_never_back():
    run = make_run()
    assert Run.objects.claim(run.uid, OWNER, 30)
    assert Run.objects.mark_running(run.uid, OWNER)
    assert not Run.objects.mark_running(run.uid, OWNER)
    assert Run.objects.mark_ending(run.uid, OWNER, outcome="failed", exit_code=1)
    assert not Run.objects.mark_running(run.uid, OWNER)
    assert Run.objects.mark_ended(run.uid, OWNER)
    assert not Run.objects.claim(run.uid, OWNER, 30)
    assert not Run.objects.renew(run.uid, OWNER, 30)
    assert not Run.objects.mark_ending(run.uid, OWNER)

    run.refresh_from_db()
    assert (run.state, run.outcome) == (State.ENDED, "failed")
    assert (run.lease_owner, run.lease_until) == ("", None)


@pytest.mark.django_db
def test_renewing_moves_the_lease_and_counts_the_beats():
    before = clock.now() - dt.timedelta(seconds=5)
    run = make_run(state="running", lease_owner=OWNER, lease_until=before)

    assert Run.objects.renew(run.uid, OWNER, 30)

    run.refresh_from_db()
    assert run.lease_beats == 1
    assert run.lease_until > before


@pytest.mark.django_db
def test_a_lost_run_ends_interrupted_with_the_reason():
    run = make_run(state="running", lease_owner=OWNER)

    assert Run.objects.end_lost(run, "its process is gone")

    run.refresh_from_db()
    assert (run.outcome, run.exit_code) == ("interrupted", 143)
    assert run.reason == "its process is gone"
    assert run.ended_at is not None


@pytest.mark.django_db
def test_a_lost_run_that_knew_its_outcome_keeps_it():
    run = make_run(
        state="ending", lease_owner=OWNER, outcome="timed_out", exit_code=124, reason="not done"
    )

    assert Run.objects.end_lost(run, "its process is gone")

    run.refresh_from_db()
    assert (run.outcome, run.exit_code, run.reason) == ("timed_out", 124, "not done")


@pytest.mark.django_db
def test_a_run_whose_lease_moved_since_it_was_read_is_not_ended():
    """agents-sandbox#173: nothing is concluded from an old snapshot."""
    run = make_run(state="running", lease_owner=OWNER)
    old = Run.objects.get(pk=run.pk)
    Run.objects.renew(run.uid, OWNER, 30)

    assert not Run.objects.end_lost(old, "gone")


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["starting", "running", "ending"])
def test_stopping_a_live_run_asks_once_and_keeps_the_first_name(state):
    run = make_run(state=state)

    assert Run.objects.request_stop(run.uid, "anna") == "asked"
    assert Run.objects.request_stop(run.uid, "boris") == "asked"

    run.refresh_from_db()
    assert run.stop_requested_by == "anna"
    assert run.state == state


@pytest.mark.django_db
def test_stopping_an_ended_run_changes_nothing():
    run = make_run(state="ended")

    assert Run.objects.request_stop(run.uid, "anna") == ""

    run.refresh_from_db()
    assert run.outcome == "succeeded"


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["queued", "ended"])
def test_the_database_refuses_a_lease_on_a_run_nobody_executes(state):
    with pytest.raises(IntegrityError, match="run_lease_only_while_live"):
        make_run(state=state, lease_until=clock.now())


@pytest.mark.django_db
@pytest.mark.parametrize("lacking", [{"outcome": ""}, {"ended_at": None}])
def test_the_database_refuses_an_ended_run_without_outcome_or_time(lacking):
    with pytest.raises(IntegrityError, match="run_ended_has_outcome"):
        make_run(state="ended", **lacking)


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["starting", "running", "ending"])
def test_the_database_refuses_a_second_live_run_in_a_workspace(state):
    make_run(state="running", workspace="/srv/one")
    make_run(state="ended", workspace="/srv/one")
    make_run(state="queued", workspace="/srv/one")

    with pytest.raises(IntegrityError), transaction.atomic():
        make_run(state=state, workspace="/srv/one")
    make_run(state=state, workspace="/srv/two")


def test_every_outcome_has_the_exit_code_of_the_contract():
    assert {name.value: code for name, code in EXIT_CODES.items()} == {
        "succeeded": 0,
        "failed": 1,
        "refused": 2,
        "needs_input": 3,
        "budget_exhausted": 4,
        "rate_limited": 5,
        "timed_out": 124,
        "stalled": 125,
        "cancelled": 130,
        "out_of_memory": 137,
        "interrupted": 143,
    }
    assert set(EXIT_CODES) == set(Outcome)


@pytest.mark.django_db
def test_duration_is_known_only_once_a_started_run_has_ended():
    now = clock.now()
    started = make_run(state="running", started_at=now)
    never = make_run(state="ended", outcome="refused")
    done = make_run(state="ended", started_at=now, ended_at=now + dt.timedelta(seconds=3))

    assert (started.duration_s, never.duration_s, done.duration_s) == (None, None, 3.0)
