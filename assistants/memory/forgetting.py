"""The end of what a removed assistant remembered: after a while, or at once when that is asked for.

Its directory, workspace and all, is its owner's and stays: these are the host's snapshots of it.
"""

from __future__ import annotations

import datetime as dt
import logging
import shutil
from pathlib import Path

from django.conf import settings

from assistants.models import Assistant, MemorySnapshot
from runs import audit, clock, locks

KEPT_DAYS = 30

_log = logging.getLogger(__name__)


def place_of(assistant: Assistant) -> Path:
    """Where its snapshots are, if there are any. Makes nothing."""
    home: Path = settings.SANDUK_HOME
    return home / "memory" / str(assistant.pk)


def removed_with_memory(name: str = "") -> list[Assistant]:
    """Removed assistants whose snapshots are still there, oldest first; of one name if given."""
    gone = Assistant.objects.filter(removed_at__isnull=False).order_by("removed_at", "pk")
    if name:
        gone = gone.filter(name=name)
    return [each for each in gone if place_of(each).is_dir()]


def forget(assistant: Assistant, *, by_policy: bool = False) -> None:
    """Remove the snapshots of a removed assistant. Raises OSError; what is left goes next time."""
    MemorySnapshot.objects.filter(assistant=assistant).delete()
    shutil.rmtree(place_of(assistant))
    write = audit.record_policy if by_policy else audit.record
    write("memory.forget", f"assistant:{assistant.name}", number=assistant.pk)


def forget_all(name: str) -> int:
    """Forget every removed assistant of a name; how many there were. Raises OSError."""
    found = removed_with_memory(name)
    for each in found:
        forget(each)
    return len(found)


def forget_old() -> None:
    """Forget what was removed long ago. What cannot be removed is tried again by the next call."""
    limit = clock.now() - dt.timedelta(days=KEPT_DAYS)
    old = [each for each in removed_with_memory() if each.removed_at and each.removed_at < limit]
    if not old:
        return
    with locks.held_if_free("forget") as free:
        for each in old if free else ():
            try:
                forget(each, by_policy=True)
            except OSError as exc:
                _log.warning("%s cannot be removed: %s", place_of(each), exc.strerror)
