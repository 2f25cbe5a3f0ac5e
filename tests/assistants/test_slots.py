"""When slots are: intervals, cron expressions, and days on which the clock is moved."""

from __future__ import annotations

import datetime as dt
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assistants import schedules
from assistants.schedules import Timing
from runs.refusal import Refusal

UTC = dt.UTC
START = dt.datetime(2026, 1, 1, tzinfo=UTC)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")


def timing(**fields) -> Timing:
    return Timing(**{"anchor_at": START, **fields})


def on_the_wall(found: Timing, day: dt.date) -> list[str]:
    """A day's slots as its clock shows them."""
    begin = dt.datetime.combine(day, dt.time(), found.zone).astimezone(UTC)
    slots = schedules.slots_after(found, begin - dt.timedelta(seconds=1))
    local = (slot.astimezone(found.zone) for slot in slots)
    return [f"{each:%H:%M %z}" for each in takewhile(lambda at: at.date() == day, local)]


def test_an_interval_is_counted_from_its_anchor_and_not_from_when_somebody_looks():
    hourly = timing(every_s=3600)

    seen = START + dt.timedelta(hours=5, minutes=17)
    assert schedules.slot_after(hourly, seen) == START + dt.timedelta(hours=6)
    assert schedules.slot_until(hourly, seen) == START + dt.timedelta(hours=5)


def test_the_first_slot_of_an_interval_is_one_interval_after_it_was_added():
    hourly = timing(every_s=3600)

    assert schedules.slot_after(hourly, START) == START + dt.timedelta(hours=1)
    assert schedules.slot_until(hourly, START + dt.timedelta(minutes=59)) is None


@pytest.mark.parametrize(
    ("zone", "day", "cron", "shown"),
    [
        # the hour that is left out: a set time comes right after it, and only once
        ("Europe/Berlin", "2026-03-29", "30 2 * * *", ["03:00 +0200"]),
        ("Europe/Berlin", "2026-03-29", "0,30 2 * * *", ["03:00 +0200"]),
        ("America/New_York", "2026-03-08", "30 2 * * *", ["03:00 -0400"]),
        ("Australia/Lord_Howe", "2026-10-04", "15 2 * * *", ["02:30 +1100"]),
        # the hour that comes twice: a set time comes in its first pass
        ("Europe/Berlin", "2026-10-25", "30 2 * * *", ["02:30 +0200"]),
        ("America/New_York", "2026-11-01", "30 1 * * *", ["01:30 -0400"]),
        ("Australia/Lord_Howe", "2026-04-05", "45 1 * * *", ["01:45 +1100"]),
        # what is at home an hour before or after is not touched
        ("Europe/Berlin", "2026-03-29", "30 7 * * *", ["07:30 +0200"]),
        ("Europe/Berlin", "2026-10-25", "30 7 * * *", ["07:30 +0100"]),
    ],
)
def test_a_set_time_comes_once_on_the_day_the_clock_is_moved(zone, day, cron, shown):
    assert on_the_wall(timing(cron=cron, timezone=zone), dt.date.fromisoformat(day)) == shown


@pytest.mark.parametrize(
    ("zone", "day", "cron", "number"),
    [
        ("Europe/Berlin", "2026-03-29", "*/30 * * * *", 46),
        ("Europe/Berlin", "2026-10-25", "*/30 * * * *", 50),
        ("America/New_York", "2026-03-08", "15 * * * *", 23),
        ("America/New_York", "2026-11-01", "15 * * * *", 25),
        ("Australia/Lord_Howe", "2026-10-04", "*/30 * * * *", 47),
        ("Australia/Lord_Howe", "2026-04-05", "*/30 * * * *", 49),
        # 02:00 is there on both days of Lord Howe but for the one that begins summer
        ("Australia/Lord_Howe", "2026-04-05", "0 */2 * * *", 12),
        ("Australia/Lord_Howe", "2026-10-04", "0 */2 * * *", 11),
    ],
)
def test_what_comes_every_so_many_minutes_follows_the_real_ones(zone, day, cron, number):
    shown = on_the_wall(timing(cron=cron, timezone=zone), dt.date.fromisoformat(day))

    assert len(shown) == number
    assert len(set(shown)) == number


@given(
    zone=st.sampled_from(ZONES),
    cron=st.sampled_from(
        ["30 2 * * *", "*/7 * * * *", "5 */3 * * *", "15 * * * *", "0,45 1-3 * * 0", "59 23 31 * *",
         "0 0 29 2 *", "* * * * *", "30 2 1 1,4,10,11 *"]
    ),
    day=st.integers(0, 800),
    second=st.integers(0, 86399),
)  # fmt: skip
@example(zone="Australia/Lord_Howe", cron="5 */3 * * *", day=94, second=50000)
# in the second pass of an hour, whose set times came in the first one
@example(zone="Europe/Berlin", cron="0,45 1-3 * * 0", day=297, second=4200)
@settings(max_examples=150, deadline=None)
def test_slots_grow_and_looking_from_between_them_finds_the_same_ones(zone, cron, day, second):
    found = timing(cron=cron, timezone=zone)
    begin = START + dt.timedelta(days=day, seconds=second)
    slots = list(islice(schedules.slots_after(found, begin), 12))

    assert slots == sorted(set(slots))
    assert all(slot > begin for slot in slots)
    for earlier, later in pairwise(slots):
        assert schedules.slot_after(found, earlier) == later
        assert schedules.slot_after(found, later - dt.timedelta(seconds=1)) == later
        assert schedules.slot_until(found, later) == later
        assert schedules.slot_until(found, later - dt.timedelta(microseconds=1)) == earlier


@given(zone=st.sampled_from(ZONES), minute=st.integers(0, 59), day=st.integers(0, 364))
@settings(max_examples=100, deadline=None)
def test_an_expression_of_every_hour_has_as_many_slots_as_hours_pass(zone, minute, day):
    found = timing(cron=f"{minute} * * * *", timezone=zone)
    begin = START + dt.timedelta(days=day)
    slots = list(islice(schedules.slots_after(found, begin), 48))

    # a clock moved by half an hour makes one step of 30 or 90 minutes, never a lost hour
    gaps = {(b - a).total_seconds() for a, b in pairwise(slots)}
    assert gaps <= {3600.0} or (zone == "Australia/Lord_Howe" and gaps <= {1800.0, 3600.0, 5400.0})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"cron": "30 7 * *"}, "five fields"),
        ({"cron": "0 30 7 * * *"}, "five fields"),
        ({"cron": "61 7 * * *"}, "minute"),
        ({"cron": "0 0 30 2 *"}, "day"),
        ({"every_s": 60, "timezone": "Europe/Atlantis"}, "Europe/Atlantis"),
        ({"every_s": 60, "timezone": "../../etc/passwd"}, "no zone"),
        ({"every_s": 60, "jitter_s": 60}, "jitter"),
        ({"cron": "*/5 * * * *", "jitter_s": 300}, "jitter must be shorter than the 5m"),
        ({"cron": "0,50 7 * * 1-5", "jitter_s": 3000}, "jitter must be shorter than the 50m"),
        ({"cron": "30 2,3 * * *", "jitter_s": 1800, "timezone": "Europe/Berlin"}, "the 30m from"),
        ({"every_s": 60, "timezone": "localtime"}, "no zone"),
        ({"every_s": 60, "timezone": "Factory"}, "no zone"),
        ({"cron": "0 7 * * *", "timezone": "right/Europe/Berlin"}, "no zone"),
        ({"every_s": 60, "quiet_hours": "22-7"}, "quiet_hours"),
        ({"every_s": 60, "quiet_hours": "22:00-22:00"}, "whole day"),
        ({"cron": "0 3 * * *", "quiet_hours": "22:00-07:00"}, "every slot"),
        ({"cron": "0 3 * * *", "every_s": 60}, "either"),
        ({}, "either"),
    ],
)
def test_what_could_never_work_is_refused(fields, said):
    with pytest.raises(Refusal, match=said):
        schedules.check(timing(**fields))


def test_jitter_is_the_same_whoever_asks_and_differs_from_slot_to_slot():
    found = timing(every_s=3600, jitter_s=600)

    once = schedules.upcoming(found, START, 20, "7")
    assert once == schedules.upcoming(found, START, 20, "7")
    moved = {(slot.not_before - slot.planned_at).total_seconds() for slot in once}
    assert len(moved) > 10
    assert all(0 <= seconds <= 600 for seconds in moved)
    assert once != schedules.upcoming(found, START, 20, "8")


def test_jitter_does_not_reach_into_quiet_hours():
    found = timing(cron="59 21 * * *", jitter_s=3600, quiet_hours="22:00-07:00")

    for slot in schedules.upcoming(found, START, 40, "7"):
        assert slot.not_before.time() < dt.time(22)


def test_no_wakeup_is_foretold_for_quiet_hours():
    found = timing(every_s=3600, quiet_hours="22:00-07:00", timezone="Europe/Berlin")

    hours = {
        slot.planned_at.astimezone(ZoneInfo("Europe/Berlin")).hour
        for slot in schedules.upcoming(found, START, 100, "")
    }
    assert hours == set(range(7, 22))


@given(
    zone=st.sampled_from(ZONES),
    start=st.times(),
    length=st.integers(1, 1439),
    at=st.datetimes(dt.datetime(2026, 1, 1), dt.datetime(2027, 12, 31), timezones=st.just(UTC)),
)
@example(
    zone="Europe/Berlin",
    start=dt.time(1),
    length=75,
    at=dt.datetime(2026, 3, 29, 0, 30, tzinfo=UTC),
)
@example(
    zone="Europe/Berlin",
    start=dt.time(1),
    length=90,
    at=dt.datetime(2026, 10, 25, 1, 10, tzinfo=UTC),
)
@settings(max_examples=200, deadline=None)  # fmt: skip
def test_quiet_hours_end_at_the_first_minute_that_is_not_in_them(zone, start, length, at):
    first = start.replace(second=0, microsecond=0, fold=0)
    last = (dt.datetime.combine(dt.date(2026, 1, 1), first) + dt.timedelta(minutes=length)).time()
    quiet = timing(every_s=60, timezone=zone, quiet_hours=f"{first:%H:%M}-{last:%H:%M}").quiet
    assert quiet is not None
    if not quiet.hold(at):
        return

    end = quiet.ending(at)

    assert end > at
    assert not quiet.hold(end)
    minute = at.replace(second=0, microsecond=0) + dt.timedelta(minutes=1)
    while minute < end:
        assert quiet.hold(minute)
        minute += dt.timedelta(minutes=1)


def test_a_jitter_shorter_than_every_gap_is_taken():
    schedules.check(timing(cron="*/5 * * * *", jitter_s=299))
    schedules.check(timing(cron="30 2,3 * * *", jitter_s=1799, timezone="Europe/Berlin"))
