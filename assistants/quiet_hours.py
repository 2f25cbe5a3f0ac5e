"""Quiet hours: a span of every day, on the clock of one zone, in which nothing is woken."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from runs.refusal import Refusal

_MINUTE = dt.timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From `start` until just before `end`; over midnight when the end is the earlier one."""

    start: dt.time
    end: dt.time
    zone: ZoneInfo

    def hold(self, at: dt.datetime) -> bool:
        """Whether that moment lies in them. It is judged by what the clock on the wall shows."""
        shown = at.astimezone(self.zone).time()
        if self.start < self.end:
            return self.start <= shown < self.end
        return shown >= self.start or shown < self.end

    def ending(self, at: dt.datetime) -> dt.datetime:
        """The first whole minute after `at`, in UTC, that does not lie in them."""
        local = at.astimezone(self.zone)
        end = dt.datetime.combine(local.date(), self.end, self.zone)
        if end.time() <= local.time():
            end += dt.timedelta(days=1)
        moment = end.astimezone(dt.UTC)
        if moment.astimezone(self.zone).utcoffset() == local.utcoffset():
            return moment
        # the clock is moved on the way: the end may come twice, or never be shown
        return self._by_the_minute(at)

    def _by_the_minute(self, at: dt.datetime) -> dt.datetime:
        moment = at.astimezone(dt.UTC).replace(second=0, microsecond=0) + _MINUTE
        while self.hold(moment):
            moment += _MINUTE
        return moment


def quiet_hours(text: str, zone: ZoneInfo) -> QuietHours | None:
    """`22:00-07:00`; None for "". Raises Refusal for anything else."""
    if not text:
        return None
    found = re.fullmatch(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)", text, re.ASCII)
    if not found:
        raise Refusal(f'quiet_hours is written as "22:00-07:00", not {text!r}')
    first, second = (dt.time(int(found[n]), int(found[n + 1])) for n in (1, 3))
    if first == second:
        raise Refusal(f"quiet_hours {text} would be the whole day, or nothing; leave it out")
    return QuietHours(first, second, zone)
