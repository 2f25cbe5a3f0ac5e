"""Stamps of what should happen again and again: when a part of sanduk was last seen at work."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
from pathlib import Path

from django.conf import settings

from runs import clock

STEP_S = 60.0  # a clock that goes back by less is being adjusted


def stamp(name: str) -> None:
    """Say that it is at work now. A disk that is full loses the stamp, nothing else."""
    path = _path(name)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f".{name}.{os.getpid()}")
        draft.write_text(clock.now().isoformat())
        draft.replace(path)
    except OSError:
        return


def seen_at(name: str) -> dt.datetime | None:
    """When it was last at work; None for never, or when the stamp cannot be read."""
    try:
        found = dt.datetime.fromisoformat(_path(name).read_text())
    except (OSError, ValueError):
        return None
    return found if found.tzinfo else None


def age_s(name: str) -> float | None:
    """Seconds since then, at least 0; None for never."""
    seen = seen_at(name)
    return None if seen is None else max((clock.now() - seen).total_seconds(), 0.0)


def since(name: str, holds: bool) -> dt.datetime | None:
    """Since when a state was seen to hold, look by look; None when it does not.

    None, too, where that cannot be remembered: it would be news at every look.
    """
    if not holds:
        with contextlib.suppress(OSError):
            _path(name).unlink(missing_ok=True)
        return None
    if (began := seen_at(name)) is not None:
        return began
    stamp(name)
    return seen_at(name)


def is_behind(name: str) -> bool:
    """Whether the clock shows less than the stamp: it was set back since."""
    seen = seen_at(name)
    return seen is not None and (seen - clock.now()).total_seconds() > STEP_S


def _path(name: str) -> Path:
    home: Path = settings.SANDUK_HOME
    return home / "pulse" / name
