"""Watching a disk while something hostile may write on it: no engine here limits that by itself."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from django.conf import settings

LOOK_S = 1.0
MB = 1 << 20
WRITES_MAX = 8 << 30  # bytes
FILES_MAX = 2_000_000


async def filled(place: Path, *, most: int = WRITES_MAX) -> str:
    """Wait until the file system of a directory has become much fuller, or all but full; why.

    What else is written there meanwhile counts too: a disk that fills is no place to go on.

    Args:
        most: how many bytes may be written.
    """
    before = os.statvfs(place)
    while True:
        await asyncio.sleep(LOOK_S)
        try:
            now = os.statvfs(place)
        except OSError:  # it is being removed
            continue
        written = _free(before) - _free(now)
        if written > most:
            return f"{written // MB:,} MB were written meanwhile; at most {most // MB:,} MB may be"
        if before.f_favail - now.f_favail > FILES_MAX:
            return f"more than {FILES_MAX:,} files were made"
        if written > MB and _free(now) < settings.SANDUK_MIN_FREE_MB * MB:
            return f"only {_free(now) // MB:,} MB are free any more (SANDUK_MIN_FREE_MB)"


def _free(facts: os.statvfs_result) -> int:
    return facts.f_bavail * facts.f_frsize
