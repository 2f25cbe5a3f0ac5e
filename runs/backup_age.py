"""When the last backup was made, and whether that is too long ago."""

from __future__ import annotations

import datetime as dt

from django.conf import settings

from runs import clock, pulse

NAME = "backup"


def made_at() -> dt.datetime | None:
    return pulse.seen_at(NAME)


def trouble() -> str:
    """What is wrong with it, in a sentence; "" when nothing is, or nobody wants to know."""
    days = settings.SANDUK_BACKUP_DAYS
    if not days:
        return ""
    made, now = made_at(), clock.now()
    if made is not None:
        age = (now - made).days
        return f"The last backup is {age} days old." if age >= days else ""
    began = _began()
    if began is None or (now - began).days < days:
        return ""
    return "There is no backup of this installation."


def _began() -> dt.datetime | None:
    """Since when there is something to lose."""
    try:
        made = (settings.SANDUK_HOME / "install-id").stat().st_mtime
    except OSError:
        return None
    return dt.datetime.fromtimestamp(made, dt.UTC)
