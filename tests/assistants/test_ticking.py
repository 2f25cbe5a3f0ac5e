"""One look at what is due: slots become rows once, and rows become running wakeups in order."""

from __future__ import annotations

import datetime as dt
import subprocess
import threading
from pathlib import Path

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from assistants import ticking, wakeups
from assistants.config import Config
from assistants.foreground import Foreground
from assistants.models import Assistant, Schedule, Wakeup
from assistants.ticking import Ticked
from runs import clock, lease, pulse
from runs.models import Run
from runs.models.run import RING_AGAIN_S
from tests.assistants.waking import Runs, assistant_in, memory, runs
from tests.factories import make_assistant, make_run, make_schedule, make_wakeup
from tests.runs.conftest import state

__all__ = ["memory", "runs", "state"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("state")]
MINUTE, HOUR = dt.timedelta(minutes=1), dt.timedelta(hours=1)


@pytest.fixture(autouse=True)
def many(settings):
    settings.SANDUK_MAX_RUNS = 50


def due(assistant: Assistant | None = None, *, ago: dt.timedelta = MINUTE, **fields) -> Schedule:
    """A schedule whose slot came a while ago, and that is on time."""
    fields.setdefault("every_s", 1800)
    planned = clock.now() - ago
    anchor = planned - dt.timedelta(seconds=fields["every_s"] or 60)
    return make_schedule(assistant, next_at=planned, anchor_at=anchor, **fields)


def tick() -> tuple[Ticked, list[int]]:
    rung: list[int] = []
    return ticking.tick(lambda wakeup: rung.append(wakeup.pk)), rung


def test_a_due_slot_becomes_one_wakeup_and_the_schedule_goes_on():
    schedule = due()
    planned = schedule.next_at

    done, rung = tick()

    wakeup = Wakeup.objects.get()
    assert (wakeup.planned_at, wakeup.trigger, wakeup.state) == (planned, "schedule", "waiting")
    assert done.planned == rung == [wakeup.pk]
    schedule.refresh_from_db()
    assert schedule.next_at == planned + 30 * MINUTE
    assert tick()[1] == []


def test_ten_looks_at_once_start_one_wakeup():
    for _ in range(5):
        due()
    start, rung = threading.Barrier(10), []

    def look() -> None:
        start.wait()
        ticking.tick(lambda wakeup: rung.append(wakeup.pk))
        connections.close_all()

    threads = [threading.Thread(target=look) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert Wakeup.objects.count() == 5
    assert sorted(rung) == sorted(Wakeup.objects.values_list("pk", flat=True))


def test_nothing_is_asked_of_those_that_are_not_due():
    for _ in range(3):
        due()
    tick()
    tick()  # once an hour there is more to do than looking
    with CaptureQueriesContext(connection) as few:
        tick()
    for _ in range(200):
        make_schedule(next_at=clock.now() + HOUR)

    with CaptureQueriesContext(connection) as many_queries:
        tick()

    assert len(many_queries) == len(few)


def test_a_schedule_without_a_next_slot_gets_one():
    """hermes-agent#5518."""
    schedule = make_schedule(next_at=None)

    tick()

    schedule.refresh_from_db()
    assert schedule.next_at is not None
    assert clock.now() < schedule.next_at <= clock.now() + 30 * MINUTE


def test_slots_that_were_missed_keep_a_row_with_the_reason():
    """hermes-agent#111212, #59383."""
    due(ago=3 * HOUR + MINUTE, missed="skip")

    done, rung = tick()

    # the last slot came a minute ago: it is on time
    assert len(rung) == 1
    missed = Wakeup.objects.filter(outcome="missed")
    assert missed.count() == 6
    assert all("host was off, asleep or busy" in row.reason for row in missed)
    assert sorted(done.skipped) == sorted(missed.values_list("pk", flat=True))


def test_after_a_year_off_there_are_few_rows_and_one_wakeup():
    due(ago=dt.timedelta(days=366), every_s=60)

    _, rung = tick()

    assert len(rung) == 1
    assert Wakeup.objects.count() <= 25


def test_a_zone_that_is_gone_disables_its_assistant_and_delays_nobody():
    bad, good = due(timezone="Nowhere/Atlantis"), due()

    done, rung = tick()

    assert [Wakeup.objects.get(pk=pk).schedule for pk in rung] == [good]
    assert (
        "Nowhere/Atlantis"
        in bad.assistant.__class__.objects.get(pk=bad.assistant_id).disabled_reason
    )
    assert len(done.troubles) == 1
    assert tick()[0].troubles == []


def test_only_so_many_are_started_at_once_the_others_wait_in_order(settings):
    """hermes-agent#52542."""
    settings.SANDUK_MAX_RUNS = 2
    for minutes in (3, 5, 1, 4):
        due(ago=minutes * MINUTE)

    _, rung = tick()

    planned = [Wakeup.objects.get(pk=pk).planned_at for pk in rung]
    assert planned == sorted(Wakeup.objects.values_list("planned_at", flat=True))[:2]
    assert tick()[1] == []  # they were told, and may be on their way
    for pk in rung:
        Wakeup.objects.claim(pk, "x", 30)
    assert tick()[1] == []
    Wakeup.objects.end(rung[0], "x", "succeeded")
    assert len(tick()[1]) == 1


def test_one_that_was_told_and_did_not_come_is_told_again():
    due()
    _, first = tick()
    stale = clock.now() - dt.timedelta(seconds=RING_AGAIN_S + 1)
    Wakeup.objects.update(rung_at=stale)

    assert tick()[1] == first
    Wakeup.objects.update(rung_at=clock.now() + HOUR)  # the clock was set back since
    assert tick()[1] == first


def test_what_is_removed_or_disabled_meanwhile_does_not_run():
    removed, disabled = due().assistant, due().assistant
    ticking.plan(Ticked(), clock.now())
    Assistant.objects.filter(pk=removed.pk).update(removed_at=clock.now())
    Assistant.objects.disable(disabled.pk, "enough")

    _, rung = tick()

    assert rung == []
    assert set(Wakeup.objects.values_list("outcome", "reason")) == {
        ("cancelled", "the assistant was removed"),
        ("cancelled", "the assistant was disabled"),
    }


def test_backing_off_skips_slots_with_the_reason_but_no_call_by_hand():
    one = make_assistant(failures=2, not_before=clock.now() + HOUR)
    due(one)

    _, rung = tick()

    assert rung == []
    skipped = Wakeup.objects.get()
    assert skipped.outcome == "backing_off"
    assert "after 2 failures" in skipped.reason
    asked = ticking.wake_by_hand(one, asked_by="ada")
    assert tick()[1] == [asked.pk]


def test_a_slot_during_the_wakeup_before_is_skipped_or_waits_as_it_was_set():
    for overlap, expected in (("skip", ("ended", "overlap")), ("wait", ("waiting", ""))):
        one = make_assistant(config=Config(overlap=overlap))
        make_wakeup(one, state="running", lease_owner="elsewhere")
        due(one)

        _, rung = tick()

        assert rung == []
        row = Wakeup.objects.get(assistant=one, trigger="schedule")
        assert (row.state, row.outcome) == expected


def test_waiting_slots_of_one_assistant_do_not_pile_up():
    one = make_assistant(config=Config(overlap="wait"))
    make_wakeup(one, state="running", lease_owner="elsewhere")
    for minutes in (9, 8, 7):
        planned = clock.now() - minutes * MINUTE
        make_wakeup(one, trigger="schedule", schedule=make_schedule(one), planned_at=planned)

    tick()

    assert Wakeup.objects.filter(assistant=one, state="waiting").count() == 1
    assert Wakeup.objects.filter(assistant=one, outcome="overlap").count() == 2


def test_a_slot_that_found_no_room_for_too_long_is_missed():
    young = make_schedule(
        missed="once-if-younger-than", missed_within_s=1800, next_at=clock.now() + HOUR
    )
    make_wakeup(young.assistant, trigger="schedule", schedule=young, planned_at=clock.now() - HOUR)

    assert tick()[1] == []
    assert Wakeup.objects.get().outcome == "missed"


def test_after_the_clock_was_set_back_no_schedule_sleeps_until_it_is_there_again(
    tmp_path, monkeypatch
):
    """node-schedule#604, #387."""
    schedule = due()
    steer = tmp_path / "clock"
    monkeypatch.setenv("SANDUK_CLOCK_FILE", str(steer))
    steer.write_text(str(365 * 86400))
    tick()
    schedule.refresh_from_db()
    assert schedule.next_at > clock.now()
    steer.write_text("0")

    tick()

    schedule.refresh_from_db()
    assert schedule.next_at <= clock.now() + 30 * MINUTE
    assert not pulse.is_behind("tick")


@pytest.mark.usefixtures("memory")
def test_a_look_ends_what_a_dead_process_left_and_starts_it_again(runs: Runs, tmp_path: Path):
    """S-11."""
    one = assistant_in(tmp_path)
    lost = make_wakeup(one, state="running", lease_owner=_gone())

    done, rung = tick()

    assert done.recovered == [lost.pk]
    again = Wakeup.objects.get(trigger="again")
    assert rung == [again.pk]


@pytest.mark.usefixtures("memory", "runs")
def test_a_lost_one_that_cannot_be_ended_keeps_nobody_else_waiting(tmp_path: Path, monkeypatch):
    first = make_wakeup(assistant_in(tmp_path), state="running", lease_owner=_gone())
    second = make_wakeup(assistant_in(tmp_path, name="other"), state="running", lease_owner=_gone())
    real = ticking.wakeups.recover

    def recover(wakeup: Wakeup, console: object) -> Wakeup | None:
        if wakeup.pk == first.pk:
            raise RuntimeError("no")
        return real(wakeup)

    monkeypatch.setattr(ticking.wakeups, "recover", recover)
    due()

    done, rung = tick()

    assert done.recovered == [second.pk]
    assert len(done.troubles) == 1
    assert len(rung) == 2  # the slot that came, and the second try


def test_an_expression_that_cannot_be_read_any_more_delays_nobody():
    bad, good = due(every_s=None, cron="61 * * * *"), due()

    done, rung = tick()

    assert [Wakeup.objects.get(pk=pk).schedule for pk in rung] == [good]
    assert (
        "its schedule cannot be used" in Assistant.objects.get(pk=bad.assistant_id).disabled_reason
    )
    assert len(done.troubles) == 1


@pytest.mark.usefixtures("memory", "runs")
def test_a_living_process_is_never_taken_for_lost(tmp_path: Path):
    from runs import lease

    make_wakeup(assistant_in(tmp_path), state="running", lease_owner=lease.owner())
    make_wakeup(make_assistant(), state="running", lease_owner="another/machine/0/1/2")

    assert tick()[0].recovered == []


@pytest.mark.usefixtures("memory", "runs")
def test_the_lost_run_of_a_lost_wakeup_is_ended_first(tmp_path: Path, monkeypatch):
    from runs import reconcile
    from tests.runs.fake_engine import FakeEngine

    monkeypatch.setattr(reconcile, "get_engine", lambda name: FakeEngine())
    one = assistant_in(tmp_path)
    run = make_run(state="running", lease_owner=_gone(), workspace=f"{one.directory}/workspace")
    lost = make_wakeup(one, state="running", lease_owner=_gone(), run=run)

    done, _ = tick()

    assert done.recovered == [lost.pk]
    assert Run.objects.get().outcome == "interrupted"
    lost.refresh_from_db()
    assert lost.outcome == "interrupted"


def test_a_disabled_assistant_is_not_woken_by_hand():
    from runs.refusal import Refusal

    one = make_assistant("tired")
    Assistant.objects.disable(one.pk, "3 failures in a row")
    one.refresh_from_db()

    with pytest.raises(
        Refusal, match=r"disabled .3 failures in a row.; sanduk assistant enable tired"
    ):
        ticking.wake_by_hand(one, asked_by="ada")


def _gone() -> str:
    """An owner that can be proved gone."""
    from runs import lease

    machine, boot, namespace, pid, _ = lease.owner().split("/")
    return "/".join((machine, boot, namespace, pid, "1"))


@pytest.mark.parametrize("broken", ["its directory is gone", "its settings are none", "held"])
def test_one_that_cannot_be_woken_does_not_make_serve_look_without_end(
    tmp_path: Path, runs: Runs, broken: str
):
    """S-3: its slot is over, or somebody's; the next look comes with the next slot."""
    one = assistant_in(tmp_path)
    due(one, every_s=3600)
    if broken == "held":
        make_wakeup(one, state="running", lease_owner=lease.owner())
    elif broken == "its settings are none":
        Assistant.objects.filter(pk=one.pk).update(config={"no_such_key": 1})
    else:
        Path(one.directory).rename(tmp_path / "moved")

    done = ticking.tick(lambda wakeup: wakeups.wake(wakeup.pk))

    assert len(done.planned) == 1
    assert Foreground(lambda wakeup: None, lambda said: None)._pause(30.0) == 30.0
    assert ticking.tick(lambda wakeup: wakeups.wake(wakeup.pk)).rung == []


@pytest.mark.parametrize("interval_s", [0.5, 1, 30])
def test_with_nothing_to_do_serve_looks_once_per_interval(interval_s: float):
    assert Foreground(lambda wakeup: None, lambda said: None)._pause(interval_s) == interval_s


@pytest.mark.parametrize(("program", "told"), [("false", 1), ("true", 0)])
def test_a_wakeups_process_that_dies_before_it_began_is_told(program: str, told: int):
    """One that ended well found that the wakeup is not its own."""
    wakeup, said = make_wakeup(make_assistant("daily")), []
    foreground = Foreground(lambda wakeup: None, said.append)
    process = foreground._processes._going[wakeup.pk] = subprocess.Popen([program])
    process.wait(10)

    assert foreground._reaped()

    expected = "daily: its process ended with 1 before it began; a later look tries again"
    assert said == [expected] * told
