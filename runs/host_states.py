"""What may be wrong with the host as a whole, and since when it has been so."""

from __future__ import annotations

import datetime as dt
import shutil

from django.conf import settings

from runs import pulse

ASLEEP_S = 180.0  # a worker that has not stamped for so long is not at work
# a run is refused below the least; ten times that is the time to clear up
LITTLE_ROOM = 10
_ROOM_AGAIN = 15  # more than what began it: the edge is crossed once, not at every look


def free_mb() -> int:
    return shutil.disk_usage(settings.SANDUK_HOME).free // 2**20


def is_room_little(free: int) -> bool:
    """Whether so many free MB are few enough to say so."""
    return free < LITTLE_ROOM * settings.SANDUK_MIN_FREE_MB


def is_worker_away() -> bool:
    """Whether a worker was at work here once and is not now."""
    age_s = pulse.age_s("worker")
    return age_s is not None and age_s > ASLEEP_S


def little_room_since() -> dt.datetime | None:
    """Since when there is little room; remembered until there is clearly more."""
    free = free_mb()
    is_over = free >= _ROOM_AGAIN * settings.SANDUK_MIN_FREE_MB
    goes_on = pulse.seen_at("little-room") is not None and not is_over
    return pulse.since("little-room", goes_on or is_room_little(free))


def worker_away_since() -> dt.datetime | None:
    """Since when it has been noticed that the worker is away."""
    return pulse.since("worker-away", is_worker_away())
