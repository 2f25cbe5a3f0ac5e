"""Slots of a cron expression on the clock of a zone. The grammar is cronsim's."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from runs.refusal import Refusal

FARTHEST = dt.timedelta(days=9 * 366)  # no two slots lie further apart: 29 February over 2100
_SECOND = dt.timedelta(seconds=1)


def slots(text: str, zone: ZoneInfo, after: dt.datetime) -> Iterator[dt.datetime]:
    """Every slot later than `after`, in UTC and in order."""
    minute, hour, *_ = text.split()
    # as Debian's cron: only what runs at a set time is moved out of an hour that is left out, and
    # comes once in an hour that comes twice
    if minute.startswith("*") or hour.startswith("*"):
        return _by_real_minutes(text, zone, after)
    return _at_set_times(text, zone, after)


def check(text: str, zone: ZoneInfo) -> None:
    """Raises Refusal when it is no expression of five fields, or no day matches it."""
    if len(text.split()) != 5:
        raise Refusal(f'cron takes five fields, as "30 7 * * 1-5" (minute first), not {text!r}')
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    try:
        first = next(slots(text, zone, start), None)
    except CronSimError as exc:
        raise Refusal(f"cron {text!r}: {exc}") from None
    if first is None or first - start > FARTHEST:
        raise Refusal(f"cron {text!r}: no day of the next nine years matches it")


def _at_set_times(text: str, zone: ZoneInfo, after: dt.datetime) -> Iterator[dt.datetime]:
    last = after
    for local in CronSim(text, after.astimezone(zone)):
        slot = local.astimezone(dt.UTC)
        # seen from the second pass of an hour, the first pass's slots come once more
        if slot > last:
            yield slot
            last = slot


def _by_real_minutes(text: str, zone: ZoneInfo, after: dt.datetime) -> Iterator[dt.datetime]:
    """Between two changes of the clock it is plain time.

    cronsim itself goes by whole hours, and would lose slots on Lord Howe, whose clock moves by
    half of one.
    """
    at, offset = after, _offset(zone, after)
    while True:
        slot = None
        for naive in CronSim(text, (at.astimezone(dt.UTC) + offset).replace(tzinfo=None)):
            slot = (naive - offset).replace(tzinfo=dt.UTC)
            if _offset(zone, slot) != offset:
                break
            yield slot
        else:
            return
        change = _change(zone, max(at, after), slot, offset)
        at, offset = change - _SECOND, _offset(zone, change)


def _change(
    zone: ZoneInfo, low: dt.datetime, high: dt.datetime, offset: dt.timedelta
) -> dt.datetime:
    """A moment from `low` to `high` from which on the clock is no longer at `offset`."""
    low = low.replace(microsecond=0)
    while high - low > _SECOND:
        middle = low + ((high - low) / 2) // _SECOND * _SECOND
        low, high = (middle, high) if _offset(zone, middle) == offset else (low, middle)
    return high


def _offset(zone: ZoneInfo, at: dt.datetime) -> dt.timedelta:
    return at.astimezone(zone).utcoffset() or dt.timedelta()
