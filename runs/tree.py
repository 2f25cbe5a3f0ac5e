"""Reading a tree that somebody hostile wrote: by descriptor, never following a link.

Every step opens one name below an already open directory with O_NOFOLLOW, so a name that is
swapped for a link between a check and its use leads nowhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# a pipe without a writer would block an ordinary open for ever
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotARegularFile(OSError):
    """A link, a pipe, a socket, a device or a directory stands where a file was expected."""


@dataclass(frozen=True, slots=True)
class Content:
    """A file's first bytes, and how large it says it is."""

    data: bytes
    size: int

    @property
    def cut(self) -> bool:
        return self.size > len(self.data)


@contextmanager
def opened(root: str) -> Iterator[int]:
    """A descriptor of the directory `root`, whose own last component may not be a link."""
    descriptor = os.open(root, _DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_file(root: int, relative: str, *, limit: int) -> Content:
    """At most `limit` bytes of a regular file below the open directory `root`.

    Raises:
        FileNotFoundError: there is nothing of that name.
        PermissionError: this account may not read it.
        NotARegularFile: what is there is no regular file, or a directory on the way is a link.
    """
    parts = [part for part in relative.split("/") if part not in ("", ".")]
    if not parts or ".." in parts or "\0" in relative:
        raise NotARegularFile(f"not a path below the directory: {relative!r}")
    directory = os.dup(root)
    try:
        for part in parts[:-1]:
            directory = _descend(directory, part)
        return _read(directory, parts[-1], limit)
    finally:
        os.close(directory)


def below(directory: int, name: str) -> int:
    """A descriptor of the directory `name` in an open one. Raises as `read_file` does."""
    try:
        return os.open(name, _DIRECTORY, dir_fd=directory)
    except (FileNotFoundError, PermissionError):
        raise
    except OSError as exc:  # ENOTDIR or ELOOP: a link; ENAMETOOLONG
        raise NotARegularFile(f"{name!r} is no directory") from exc


def regular(directory: int, name: str) -> tuple[int, os.stat_result]:
    """A descriptor of the regular file `name` in an open directory, and its facts.

    Raises as `read_file` does.
    """
    try:
        descriptor = os.open(name, _FILE, dir_fd=directory)
    except (FileNotFoundError, PermissionError):
        raise
    except OSError as exc:  # ELOOP: a link; ENXIO: a socket
        raise NotARegularFile(f"{name!r} is no regular file") from exc
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        os.close(descriptor)
        raise NotARegularFile(f"{name!r} is no regular file")
    return descriptor, facts


def _descend(directory: int, name: str) -> int:
    found = below(directory, name)
    os.close(directory)
    return found


def _read(directory: int, name: str, limit: int) -> Content:
    descriptor, facts = regular(directory, name)
    try:
        data = bytearray()
        while len(data) < limit:
            piece = os.read(descriptor, min(limit - len(data), 1 << 20))
            if not piece:
                break
            data += piece
        return Content(bytes(data), max(facts.st_size, len(data)))
    finally:
        os.close(descriptor)
