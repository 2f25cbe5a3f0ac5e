"""Files that a recipe names: read inside its directory, never through a link."""

from __future__ import annotations

import os
import stat

from msgspec import Struct

MAX_FILE_BYTES = 64 * 1024 * 1024


class FileContent(Struct, frozen=True):
    """What a file held when it was read. Hashing and rendering use these same bytes."""

    content: bytes
    mode: int  # 0o755 when its owner may execute it, else 0o644: the umask never counts


def read_inside(directory: str, relative: str) -> FileContent:
    """Read a regular file below a directory.

    Args:
        directory: where to start; may itself be reached through links.
        relative: plain segments, as the schema checks them.

    Raises:
        ValueError: it is a link, no regular file or larger than MAX_FILE_BYTES.
        OSError: it cannot be read.
    """
    *parents, name = relative.split("/")
    here = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for parent in parents:
            below = _open(parent, os.O_DIRECTORY, here)
            os.close(here)
            here = below
        # O_NONBLOCK: opening a FIFO must not wait for somebody who writes to it.
        descriptor = _open(name, os.O_NONBLOCK, here)
    finally:
        os.close(here)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is not a regular file")
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"it is larger than {MAX_FILE_BYTES} bytes")
    return FileContent(content, 0o755 if found.st_mode & stat.S_IXUSR else 0o644)


def _open(name: str, flags: int, directory: int) -> int:
    found = os.lstat(name, dir_fd=directory)
    if stat.S_ISLNK(found.st_mode):
        raise ValueError("a symbolic link is not followed")
    # Should it become a link in between, O_NOFOLLOW refuses it.
    return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=directory)
