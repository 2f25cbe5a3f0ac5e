"""Unix sockets at paths of any length.

The kernel takes 108 bytes of path (104 on macOS), and a state directory may be deeper. On Linux
the directory is opened and the socket named through it: `/proc/self/fd/7/relay.sock`.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

_DESCRIPTORS = Path("/proc/self/fd")
_LONGEST = 103  # what every system takes


class SocketPathTooLong(ValueError):
    """The path does not fit a socket address and this system offers no way around it."""


@contextlib.contextmanager
def unix_address(path: str | os.PathLike[str]) -> Iterator[str]:
    """An address for `path` that fits, valid inside the block."""
    text = os.fspath(path)
    if len(os.fsencode(text)) <= _LONGEST:
        yield text
        return
    directory, name = os.path.split(text)
    if not _DESCRIPTORS.is_dir() or len(os.fsencode(name)) > _LONGEST - 32:
        raise SocketPathTooLong(
            f"a socket path may have {_LONGEST} bytes and this one has {len(os.fsencode(text))}; "
            "choose a shorter directory"
        )
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"{_DESCRIPTORS}/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def bind_unix(path: str | os.PathLike[str], mode: int = 0o600) -> socket.socket:
    """A stream socket bound at `path`, not yet listening. The file has `mode` from its birth.

    Raises:
        SocketPathTooLong: on a system where the length counts.
        OSError: something is at that path already, or the directory is missing.
    """
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.setblocking(False)
        # Linux gives the file the mode of the unbound socket, so it is never open to others.
        os.fchmod(bound.fileno(), mode)
        with unix_address(path) as address:
            bound.bind(address)
            Path(address).chmod(mode)
    except BaseException:
        bound.close()
        raise
    return bound


def connected_unix(path: str | os.PathLike[str]) -> socket.socket:
    """A non-blocking stream socket connected to `path`. A local connect never waits."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        client.setblocking(False)
        with unix_address(path) as address:
            client.connect(address)
    except BaseException:
        client.close()
        raise
    return client
