"""Where an attempt is made: a directory of ours that is there no longer than it takes."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from runs.refusal import HostRefusal

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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
        with contextlib.suppress(OSError):  # what cannot be removed now, collecting finds
            remove(uid)


def remove(uid: str) -> None:
    """Remove what is left of the place of a change; nothing there is no error. Raises OSError."""
    _remove(clones() / uid)


def remove_whole(directory: Path) -> None:
    """Remove a directory that an agent or a test wrote in; what cannot be removed now stays."""
    with contextlib.suppress(OSError):
        _remove(directory)


def _remove(top: Path) -> None:
    """What was left in there may be deeper than any path is long, and closed to our own account.

    So nothing is followed and nothing descended into: what lies in a directory is moved up out of
    it.
    """
    if not top.is_dir() or top.is_symlink():
        return
    top.chmod(0o700)
    descriptor = os.open(top, _DIRECTORY)
    try:
        numbers = itertools.count()
        while names := _listed(descriptor):
            for name, is_directory in names:
                if is_directory:
                    _lift(descriptor, name, numbers)
                else:
                    os.unlink(name, dir_fd=descriptor)
    finally:
        os.close(descriptor)
    top.rmdir()


def size_of(place: Path) -> int:
    """Bytes of the files below a directory, nothing followed; what is too deep does not count."""
    total, waiting = 0, [place]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
                else:
                    total += entry.stat(follow_symlinks=False).st_size
    return total


def _listed(directory: int) -> list[tuple[str, bool]]:
    with os.scandir(directory) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]


def _lift(top: int, name: str, numbers: Iterator[int]) -> None:
    """Empty one directory, its own directories moved up beside it, and remove it."""
    os.chmod(name, 0o700, dir_fd=top)
    directory = os.open(name, _DIRECTORY, dir_fd=top)
    try:
        for inner, is_directory in _listed(directory):
            if not is_directory:
                os.unlink(inner, dir_fd=directory)
                continue
            os.chmod(inner, 0o700, dir_fd=directory)
            new = f".{next(numbers)}-{secrets.token_hex(8)}"
            os.rename(inner, new, src_dir_fd=directory, dst_dir_fd=top)
    finally:
        os.close(directory)
    os.rmdir(name, dir_fd=top)
