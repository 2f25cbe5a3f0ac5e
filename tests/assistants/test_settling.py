"""What becomes of slots whose time has come: which runs, which do not, and why."""

from __future__ import annotations

import datetime as dt
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistants import schedules
from assistants.schedules import Timing, settle
from tests.pace import stretched

UTC = dt.UTC
START = dt.datetime(2026, 1, 1, tzinfo=UTC)
HOUR, MINUTE = dt.timedelta(hours=1), dt.timedelta(minutes=1)


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=UTC)


def timing(**fields) -> Timing:
    return Timing(**{"anchor_at": START, **fields})


def daily(**fields) -> Timing:
    return timing(cron="0 6 * * *", **fields)


def test_a_schedule_that_was_never_planned_begins_with_its_next_slot():
    done = settle(daily(), None, at("2026-06-01T08:00"), "1")

    assert (done.skipped, done.run, done.next_at) == ((), None, at("2026-06-02T06:00"))


def test_a_slot_on_time_runs_and_the_next_one_is_planned():
    done = settle(daily(), at("2026-06-01T06:00"), at("2026-06-01T06:00:40"), "1")

    assert done.run == schedules.Slot(at("2026-06-01T06:00"), at("2026-06-01T06:00"))
    assert (done.skipped, done.next_at) == ((), at("2026-06-02T06:00"))


def test_before_its_time_nothing_happens():
    planned = at("2026-06-01T06:00")

    done = settle(daily(), planned, planned - MINUTE, "1")
    assert (done.skipped, done.run, done.next_at) == ((), None, planned)


@pytest.mark.parametrize(
    ("fields", "hours_late", "runs"),
    [
        ({"missed": "skip"}, 0.1, True),  # on time: a pass comes every minute or more
        ({"missed": "skip"}, 2, False),
        ({"missed": "once"}, 2, True),
        ({"missed": "once"}, 23, True),
        ({"missed": "once-if-younger-than", "missed_within_s": 3 * 3600}, 2, True),
        ({"missed": "once-if-younger-than", "missed_within_s": 3 * 3600}, 4, False),
    ],
)
def test_a_slot_the_host_slept_through_is_made_up_for_as_its_policy_says(fields, hours_late, runs):
    planned = at("2026-06-01T06:00")
    done = settle(daily(**fields), planned, planned + hours_late * HOUR, "1")

    assert (done.run is not None) is runs
    assert len(done.skipped) == (0 if runs else 1)
    if not runs:
        assert done.skipped[0].outcome == "missed"
        assert fields["missed"] in done.skipped[0].reason
    assert done.next_at == at("2026-06-02T06:00")


def test_several_missed_slots_are_made_up_for_by_one_and_each_keeps_its_reason():
    planned = at("2026-06-01T06:00")
    done = settle(daily(), planned, at("2026-06-04T09:00"), "1")

    assert done.run is not None
    assert done.run.planned_at == at("2026-06-04T06:00")
    assert [each.planned_at.day for each in done.skipped] == [1, 2, 3]
    assert all("made up for" in each.reason for each in done.skipped)


def test_a_host_that_is_up_four_hours_a_day_wakes_it_once_each_day():
    found, planned, ran = daily(), at("2026-06-01T06:00"), []
    for day in range(1, 8):
        for minute in range(0, 240):
            now = at(f"2026-06-{day:02d}T18:00") + minute * MINUTE
            done = settle(found, planned, now, "1")
            planned = done.next_at
            ran += [done.run.planned_at.day] if done.run else []

    assert ran == [1, 2, 3, 4, 5, 6, 7]


def test_a_host_that_was_off_for_a_year_writes_one_row_that_says_how_many():
    minutely = timing(every_s=60)
    began = time.monotonic()
    done = settle(minutely, START + MINUTE, START + dt.timedelta(days=365), "1")

    assert done.run is not None
    assert len(done.skipped) == 1
    assert done.skipped[0].count == 365 * 24 * 60 - 1
    assert "525,599 slots" in done.skipped[0].reason
    assert time.monotonic() - began < stretched(1)


def test_a_cron_expression_is_not_counted_without_end():
    minutely = timing(cron="* * * * *", timezone="Europe/Berlin")
    began = time.monotonic()
    done = settle(minutely, START + MINUTE, START + dt.timedelta(days=365), "1")

    assert done.run is not None
    assert done.run.planned_at == START + dt.timedelta(days=365)
    assert [each.count > 1000 for each in done.skipped] == [True]
    assert "more than 1,000" in done.skipped[0].reason
    assert time.monotonic() - began < stretched(1)


def test_what_is_made_up_for_after_a_restart_does_not_start_all_at_once():
    planned, now = at("2026-06-01T06:00"), at("2026-06-01T09:00")
    starts = {settle(daily(), planned, now, str(seed)).run.not_before for seed in range(40)}

    assert len(starts) > 15
    assert all(now <= start <= now + MINUTE for start in starts)


def test_a_night_of_quiet_hours_is_one_row_and_the_morning_runs():
    found = timing(every_s=1800, quiet_hours="22:00-07:00")
    first = settle(found, at("2026-06-01T22:00"), at("2026-06-01T22:00:30"), "1")

    assert first.run is None
    assert [(each.outcome, each.count) for each in first.skipped] == [("quiet", 18)]
    assert "22:00-07:00" in first.skipped[0].reason
    assert first.next_at == at("2026-06-02T07:00")
    morning = settle(found, first.next_at, at("2026-06-02T07:00:30"), "1")
    assert morning.run is not None
    assert morning.skipped == ()


def test_what_was_missed_before_quiet_hours_waits_for_their_end():
    found = timing(cron="50 21 * * *", quiet_hours="22:00-07:00")
    done = settle(found, at("2026-06-01T21:50"), at("2026-06-01T23:00"), "1")

    assert done.run is not None
    assert done.run.planned_at == at("2026-06-01T21:50")
    assert at("2026-06-02T07:00") <= done.run.not_before <= at("2026-06-02T07:01")


def test_what_was_missed_before_quiet_hours_gives_way_to_a_slot_at_their_end():
    found = timing(every_s=3600, quiet_hours="22:00-07:00")
    done = settle(found, at("2026-06-01T20:00"), at("2026-06-01T22:30"), "1")

    assert done.run is None
    assert [each.outcome for each in done.skipped] == ["missed", "missed", "quiet"]
    assert "quiet hours end" in done.skipped[1].reason
    assert done.next_at == at("2026-06-02T07:00")


def test_after_quiet_hours_the_last_slot_outside_of_them_is_made_up_for():
    found = timing(cron="0 20,23 * * *", quiet_hours="22:00-07:00")
    done = settle(found, at("2026-06-01T20:00"), at("2026-06-02T08:00"), "1")

    assert done.run is not None
    assert done.run.planned_at == at("2026-06-01T20:00")
    assert [(each.outcome, each.planned_at) for each in done.skipped] == [
        ("quiet", at("2026-06-01T23:00"))
    ]


def test_after_the_clock_was_set_back_no_schedule_waits_for_a_time_that_never_came():
    wrong, right = at("2030-06-01T06:00"), at("2026-06-01T08:00")
    done = settle(daily(), wrong, right, "1")

    assert (done.skipped, done.run, done.next_at) == ((), None, at("2026-06-02T06:00"))


def test_a_clock_that_steps_to_and_fro_leaves_a_slot_ahead_that_is_not_far():
    found, planned, ran = timing(every_s=60), START + MINUTE, []
    now = START
    for step in (61, 60, -30, 30, 60, -90, 90, 60, 3600, -1800, 60, 1800, 60):
        now += dt.timedelta(seconds=step)
        done = settle(found, planned, now, "1")
        planned = done.next_at
        ran += [done.run.planned_at] if done.run else []

    # a slot that is given again has its row already: one planned time, one wakeup
    assert len(ran) >= 6
    assert now < planned <= now + MINUTE


def test_a_slot_of_an_older_version_of_the_schedule_is_not_lost():
    done = settle(daily(), at("2026-06-01T05:13"), at("2026-06-01T05:14"), "1")

    assert done.run is not None
    assert done.run.planned_at == at("2026-06-01T05:13")


TIMINGS = st.builds(
    timing,
    every_s=st.none(),
    cron=st.sampled_from(["0 6 * * *", "*/20 * * * *", "30 2 * * 0", "15 */5 1-9 * *"]),
    timezone=st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]),
    missed=st.sampled_from(["skip", "once", "once-if-younger-than"]),
    missed_within_s=st.just(7200),
    quiet_hours=st.sampled_from(["", "22:00-05:30", "12:10-13:00"]),
    jitter_s=st.sampled_from([0, 300]),
) | st.builds(
    timing,
    every_s=st.sampled_from([60, 1800, 86400, 7 * 86400]),
    missed=st.sampled_from(["skip", "once"]),
    quiet_hours=st.sampled_from(["", "22:00-07:00"]),
)


@given(found=TIMINGS, steps=st.lists(st.integers(1, 40 * 86400), min_size=1, max_size=6))
@settings(max_examples=120, deadline=None)
def test_passes_at_any_time_account_for_every_slot_once_with_few_rows(found, steps):
    now = START
    planned = settle(found, None, now, "1").next_at
    seen: set[dt.datetime] = set()
    for step in steps:
        now += dt.timedelta(seconds=step)
        done = settle(found, planned, now, "1")

        assert len(done.skipped) <= schedules.EACH
        assert done.next_at > now
        rows = [each.planned_at for each in done.skipped]
        rows += [done.run.planned_at] if done.run else []
        assert len(rows) == len(set(rows))
        assert not seen & set(rows)
        assert all(planned <= row < done.next_at for row in rows)
        seen |= set(rows)
        counted = sum(each.count for each in done.skipped) + (done.run is not None)
        if done.next_at != planned and counted <= 1000:
            real = 1
            for slot in schedules.slots_after(found, planned):
                if slot >= done.next_at:
                    break
                real += 1
            assert counted == real
        again = settle(found, done.next_at, now, "1")
        assert (again.skipped, again.run, again.next_at) == ((), None, done.next_at)
        planned = done.next_at
