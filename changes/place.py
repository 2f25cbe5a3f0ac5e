"""Where an attempt is made: a directory of ours that is there no longer than it takes."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from runs.refusal import HostRefusal


def clones() -> Path:
    """Where the clones of all changes that are being made stand."""
    home: Path = settings.SANDUK_HOME
    return home / "clones"


@contextlib.contextmanager
def made(uid: str) -> Iterator[Path]:
    """An empty directory for the attempt of a change, removed however the block ends.

    Raises HostRefusal when it cannot be made.
    """
    place = clones() / uid
    try:
        clones().mkdir(mode=0o700, exist_ok=True)
        remove(uid)  # of a process that is gone: who is here holds the change
        place.mkdir(mode=0o700)
    except OSError as exc:
        raise HostRefusal(f"{place} cannot be made: {exc.strerror}") from None
    try:
        yield place
    finally:
        remove(uid)


def remove(uid: str) -> None:
    """Remove what is left of the place of a change; nothing there is no error."""
    remove_whole(clones() / uid)


def remove_whole(directory: Path) -> None:
    """Remove a directory with everything in it; nothing there is no error.

    What an agent made unreadable for its own account is opened first; nothing is followed.
    """
    if not directory.is_dir() or directory.is_symlink():
        return
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        _open_up(directory)
        shutil.rmtree(directory, ignore_errors=True)


def size_of(place: Path) -> int:
    """Bytes on disk below a directory, nothing followed."""
    total = 0
    for _, _, files, descriptor in os.fwalk(place, follow_symlinks=False):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_size
    return total


def _open_up(place: Path) -> None:
    """Give our account its rights on directories back, from the top down."""
    waiting = [place]
    while waiting:
        directory = waiting.pop()
        with contextlib.suppress(OSError):
            directory.chmod(0o700)
            with os.scandir(directory) as entries:
                waiting += [
                    Path(entry.path)
                    for entry in entries
                    if stat.S_ISDIR(entry.stat(follow_symlinks=False).st_mode)
                ]
