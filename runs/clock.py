"""The one source of time: now, monotonic, sleep.

Tests steer it across processes: SANDUK_CLOCK_FILE names a file with an offset in seconds, read on
every call, so a running executor feels a step too. A step forward is time that passes, on both
clocks; a step back moves the wall clock alone, as in real life.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import time
from pathlib import Path

STEER = "SANDUK_CLOCK_FILE"
_passed = {"at": 0.0, "sum": 0.0}  # the offset last read, and all its steps forward


def _offset_s() -> float:
    name = os.environ.get(STEER)
    if not name:
        return 0.0
    try:
        return float(Path(name).read_text() or 0)
    except (OSError, ValueError):
        return 0.0  # the file is being rewritten: keep real time for this one reading


def now() -> dt.datetime:
    """The wall clock, in UTC. It may step; never measure with it."""
    return dt.datetime.now(dt.UTC) + dt.timedelta(seconds=_offset_s())


def monotonic() -> float:
    """Seconds that only grow, for deadlines and ages within one process."""
    offset = _offset_s()
    _passed["sum"] += max(offset - _passed["at"], 0.0)
    _passed["at"] = offset
    return time.monotonic() + _passed["sum"]


async def sleep(seconds: float) -> None:
    """Sleep on the steered clock: a step forward ends it within a quarter of a second."""
    if not os.environ.get(STEER):
        await asyncio.sleep(seconds)
        return
    end = monotonic() + seconds
    while (left := end - monotonic()) > 0:  # noqa: ASYNC110 - the clock may step under us
        await asyncio.sleep(min(left, 0.25))
