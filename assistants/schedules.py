"""When an assistant is woken: planned slots, those that were missed, and what comes next.

Nothing here reads a clock or a database. A slot is a moment in UTC. Those of an interval are
counted in real seconds from an anchor, whatever clocks on walls do; those of a cron expression are
read on the clock of a zone. Where that clock is set forward, a slot of a fixed time that it leaves
out comes at the first moment after the gap; where it is set back, a fixed time comes once, its
first time. Expressions whose minute or hour begins with `*` follow the real minutes.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, pairwise, takewhile
from typing import Any
from zoneinfo import ZoneInfo

from assistants import cron
from assistants.keys import spoken
from assistants.quiet_hours import QuietHours, quiet_hours
from runs import duration
from runs.refusal import Refusal

LATE_S = 600  # a slot this old is on time: passes over the schedules are a minute or more apart
STAGGER_S = 60  # slots that are made up for start spread over this, not all at once
EACH = 20  # at most so many rows for slots that did not run; else one row that says how many
COUNTED = 1000  # slots of a cron expression are not counted further
_WINDOWS = (dt.timedelta(hours=1), dt.timedelta(days=1), dt.timedelta(days=32),
            dt.timedelta(days=366), cron.FARTHEST)  # fmt: skip

_LOOKED_AT = dt.timedelta(days=400)  # with every change of a clock
_SLOTS_LOOKED_AT = 10_000  # 10 microseconds each

_ABSENT = "the host was off, asleep or busy"

# files beside those of the zones: what they say differs from host to host, or is of no place
_NO_PLACES = frozenset({"localtime", "posixrules", "Factory"})
_NOT_NAMES = ("posix/", "right/")

SKIP, ONCE, YOUNG = "skip", "once", "once-if-younger-than"


@dataclass(frozen=True, slots=True)
class Timing:
    """A schedule as plain data; the names are those of `assistants.models.Schedule`."""

    anchor_at: dt.datetime
    every_s: int | None = None
    cron: str = ""
    timezone: str = "UTC"
    missed: str = ONCE
    missed_within_s: int | None = None
    jitter_s: int = 0
    quiet_hours: str = ""

    @property
    def zone(self) -> ZoneInfo:
        return _zone(self.timezone)

    @property
    def quiet(self) -> QuietHours | None:
        return quiet_hours(self.quiet_hours, self.zone)

    def fields(self) -> dict[str, Any]:
        """What its row keeps."""
        return {name: getattr(self, name) for name in self.__slots__}

    def same_as(self, other: Timing) -> bool:
        """Whether both say the same; where their intervals are counted from is no part of it."""
        return replace(self, anchor_at=other.anchor_at) == other


@dataclass(frozen=True, slots=True)
class Slot:
    """A planned slot, and when to start it: with its jitter, or after the quiet hours."""

    planned_at: dt.datetime
    not_before: dt.datetime


@dataclass(frozen=True, slots=True)
class Skipped:
    """One row for a slot that does not run, or for `count` of them from `planned_at` on."""

    planned_at: dt.datetime
    outcome: str  # of Wakeup.Outcome: missed or quiet
    reason: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Decision:
    """What to write down, what to start (nothing: None), and the schedule's next slot."""

    skipped: tuple[Skipped, ...]
    run: Slot | None
    next_at: dt.datetime


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The latest slot that could run, and how it runs, or why it does not."""

    chosen: dt.datetime | None
    run: Slot | None
    why: str = ""


def timing_of(schedule: Any) -> Timing:
    """The plain data of a Schedule row."""
    return Timing(**{name: getattr(schedule, name) for name in Timing.__slots__})


def check(timing: Timing) -> None:
    """Raises Refusal with what is wrong with it, naming the key of `assistant.toml`."""
    if bool(timing.every_s) == bool(timing.cron):
        raise Refusal("give either every or cron")
    zone, quiet = timing.zone, timing.quiet
    if timing.timezone in _NO_PLACES or timing.timezone.startswith(_NOT_NAMES):
        raise _no_zone(timing.timezone)
    if timing.cron:
        cron.check(timing.cron, zone)
    if timing.every_s and timing.jitter_s >= timing.every_s:
        raise Refusal("jitter must be shorter than every, or slots would pass each other")
    if timing.cron and timing.jitter_s:
        _check_jitter(timing)
    if quiet and _running_after(timing, timing.anchor_at) is None:
        raise Refusal(f"quiet_hours {timing.quiet_hours} cover every slot; nothing would run")


def _check_jitter(timing: Timing) -> None:
    """Refuse one with which a slot of the cron expression could start after the next one."""
    end = timing.anchor_at + _LOOKED_AT
    slots = takewhile(lambda slot: slot < end, slots_after(timing, timing.anchor_at))
    for slot, following in pairwise(islice(slots, _SLOTS_LOOKED_AT)):
        gap_s = (following - slot).total_seconds()
        if timing.jitter_s >= gap_s:
            raise Refusal(
                f"jitter must be shorter than the {spoken(int(gap_s))} from the slot of "
                f"{slot:%Y-%m-%d %H:%M} UTC to the next, or they would pass each other"
            )


def slots_after(timing: Timing, after: dt.datetime) -> Iterator[dt.datetime]:
    """Every slot later than `after`, in order, quiet hours or not."""
    if timing.every_s:
        every = dt.timedelta(seconds=timing.every_s)
        number = max((after - timing.anchor_at) // every + 1, 1)
        while True:
            yield timing.anchor_at + number * every
            number += 1
    yield from cron.slots(timing.cron, timing.zone, after)


def slot_after(timing: Timing, after: dt.datetime) -> dt.datetime:
    """The first slot later than `after`."""
    return next(slots_after(timing, after))


def slot_until(timing: Timing, until: dt.datetime) -> dt.datetime | None:
    """The last slot that is not later than `until`; None before the first one."""
    if timing.every_s:
        every = dt.timedelta(seconds=timing.every_s)
        number = (until - timing.anchor_at) // every
        return timing.anchor_at + number * every if number >= 1 else None
    for window in _WINDOWS:
        found = None
        for slot in slots_after(timing, until - window):
            if slot > until:
                break
            found = slot
        if found is not None:
            return found
    return None


def settle(timing: Timing, planned: dt.datetime | None, now: dt.datetime, seed: str) -> Decision:
    """What becomes of the slots from `planned` to `now`.

    At most one runs. Calling it again with what it answered changes nothing until the next slot.

    Args:
        planned: the schedule's next slot as it was last written; None for one never planned.
        seed: what tells this schedule from others: jitter and stagger follow from it.
    """
    if planned is None:
        return Decision((), None, _next_at(timing, now))
    if planned > now:
        # farther away than the next slot: the clock has been set back since
        return Decision((), None, min(planned, _next_at(timing, now)))
    next_at = _next_at(timing, now)
    chosen = _latest_running(timing, planned, now)
    verdict = _judge(timing, chosen, now, seed) if chosen else _Verdict(None, None)
    return Decision(_skipped(timing, planned, next_at, verdict), verdict.run, next_at)


def upcoming(timing: Timing, now: dt.datetime, count: int, seed: str) -> list[Slot]:
    """The next `count` slots that will run."""
    found: list[Slot] = []
    at = now
    while len(found) < count and (slot := _running_after(timing, at)) is not None:
        found.append(Slot(slot, _jittered(timing, slot, seed)))
        at = slot
    return found


def _judge(timing: Timing, slot: dt.datetime, now: dt.datetime, seed: str) -> _Verdict:
    """Whether the latest slot that could run does."""
    age_s = (now - slot).total_seconds()
    if age_s <= LATE_S:
        return _Verdict(slot, Slot(slot, _jittered(timing, slot, seed)))
    late = f"seen {duration.spoken(age_s)} late: {_ABSENT}"
    if timing.missed == SKIP:
        return _Verdict(slot, None, f"{late} (missed = skip)")
    if timing.missed == YOUNG and age_s > (timing.missed_within_s or 0):
        within = duration.spoken(timing.missed_within_s or 0)
        return _Verdict(slot, None, f"{late}, longer than {within} (missed = {YOUNG})")
    start = now
    quiet = timing.quiet
    if quiet and quiet.hold(now):
        start = quiet.ending(now)
        following = _running_after(timing, now)
        if following and (following - start).total_seconds() <= LATE_S:
            return _Verdict(slot, None, f"{late}; the next slot comes when the quiet hours end")
    stagger = dt.timedelta(seconds=_share(seed, slot, STAGGER_S))
    return _Verdict(slot, Slot(slot, start + stagger))


def _skipped(
    timing: Timing, planned: dt.datetime, end: dt.datetime, verdict: _Verdict
) -> tuple[Skipped, ...]:
    """Rows for the slots from `planned` to before `end`, but for the one that runs."""
    ran = verdict.run.planned_at if verdict.run else None
    open_slots = (slot for slot in _slots_between(timing, planned, end) if slot != ran)
    each = list(islice(_grouped(timing, open_slots, verdict), EACH + 1))
    if len(each) <= EACH:
        return tuple(each)
    first, count = each[0].planned_at, _count(timing, planned, end, ran)
    many = f"more than {COUNTED:,}" if count > COUNTED and timing.cron else f"{count:,}"
    reason = f"{many} slots before {end:%Y-%m-%d %H:%M} UTC: {_ABSENT}"
    return (Skipped(first, "missed", reason, count),)


def _grouped(timing: Timing, slots: Iterator[dt.datetime], verdict: _Verdict) -> Iterator[Skipped]:
    """A row for each slot; those of one night's quiet hours share one."""
    quiet = timing.quiet
    slot = next(slots, None)
    while slot is not None:
        if not (quiet and quiet.hold(slot)):
            yield Skipped(slot, "missed", _reason(slot, verdict))
            slot = next(slots, None)
            continue
        ending = quiet.ending(slot)
        first, count = slot, 0
        while slot is not None and slot < ending:
            count, slot = count + 1, next(slots, None)
        number = f"{count} slots in " if count > 1 else ""
        yield Skipped(first, "quiet", f"{number}quiet hours {timing.quiet_hours}", count)


def _reason(slot: dt.datetime, verdict: _Verdict) -> str:
    if slot == verdict.chosen:
        return verdict.why
    if verdict.run is None:
        return _ABSENT
    return f"{_ABSENT}; made up for by the slot of {verdict.run.planned_at:%Y-%m-%d %H:%M} UTC"


def _slots_between(timing: Timing, first: dt.datetime, end: dt.datetime) -> Iterator[dt.datetime]:
    """`first`, which may be of an older version of the schedule, and the slots before `end`."""
    yield first
    yield from takewhile(lambda slot: slot < end, slots_after(timing, first))


def _count(timing: Timing, first: dt.datetime, end: dt.datetime, ran: dt.datetime | None) -> int:
    if timing.every_s:
        every = dt.timedelta(seconds=timing.every_s)
        number = -((first - end) // every)
    else:
        number = sum(1 for _ in islice(_slots_between(timing, first, end), COUNTED + 2))
    return number - (ran is not None)


def _latest_running(timing: Timing, planned: dt.datetime, now: dt.datetime) -> dt.datetime | None:
    """The last slot from `planned` to `now` outside of quiet hours."""
    slot = slot_until(timing, now)
    if slot is None or slot < planned:
        slot = planned
    quiet = timing.quiet
    while quiet and slot is not None and slot >= planned and quiet.hold(slot):
        slot = slot_until(timing, _quiet_began(quiet, slot) - dt.timedelta(microseconds=1))
    return slot if slot is not None and slot >= planned else None


def _quiet_began(quiet: QuietHours, at: dt.datetime) -> dt.datetime:
    """When the quiet hours around `at` began; a later moment where the clock was set in them."""
    local = at.astimezone(quiet.zone)
    day = local.date() - dt.timedelta(days=local.time() < quiet.start)
    began = dt.datetime.combine(day, quiet.start, quiet.zone).astimezone(dt.UTC)
    return min(began, at)


def _running_after(timing: Timing, after: dt.datetime) -> dt.datetime | None:
    """The first slot later than `after` outside of quiet hours; None: none within a year or so."""
    quiet = timing.quiet
    end = after + (dt.timedelta(days=400) if quiet else cron.FARTHEST)
    slot = slot_after(timing, after)
    while quiet and quiet.hold(slot) and slot < end:
        slot = slot_after(timing, quiet.ending(slot) - dt.timedelta(microseconds=1))
    return slot if slot < end else None


def _next_at(timing: Timing, now: dt.datetime) -> dt.datetime:
    """The next slot to look at. One of the running quiet hours is known: it is not looked at."""
    slot, quiet = slot_after(timing, now), timing.quiet
    if quiet and quiet.hold(now) and slot < (ending := quiet.ending(now)):
        return slot_after(timing, ending - dt.timedelta(microseconds=1))
    return slot


def _jittered(timing: Timing, slot: dt.datetime, seed: str) -> dt.datetime:
    moved = slot + dt.timedelta(seconds=_share(seed, slot, timing.jitter_s))
    quiet = timing.quiet
    return slot if quiet and quiet.hold(moved) else moved


def _share(seed: str, slot: dt.datetime, most: int) -> int:
    """0 to `most`, always the same for one seed and slot."""
    digest = hashlib.sha256(f"{seed}\0{slot.isoformat()}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % (most + 1)


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise _no_zone(name) from None


def _no_zone(name: str) -> Refusal:
    return Refusal(
        f"timezone {name!r} is no zone this host knows; write it as Europe/Berlin or UTC"
    )
