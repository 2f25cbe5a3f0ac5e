"""Locks between processes: the kernel lets go of one when its holder dies."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from django.conf import settings

PAUSE_S = 0.3


@contextlib.asynccontextmanager
async def held(
    name: str, on_wait: Callable[[], None] | None = None, *, shared: bool = False
) -> AsyncIterator[None]:
    """Hold this installation's lock of that name; `on_wait` is called once if it is taken.

    Args:
        shared: beside others who hold it shared, but beside nobody who holds it alone.
    """
    with _opened(name) as descriptor:
        waited = False
        while not _taken(descriptor, shared=shared):
            if not waited and on_wait is not None:
                on_wait()
            waited = True
            await asyncio.sleep(PAUSE_S)
        yield


@contextlib.contextmanager
def held_if_free(name: str) -> Iterator[bool]:
    """Hold the lock for the block if nobody does; whether that is so."""
    with _opened(name) as descriptor:
        yield _taken(descriptor)


@contextlib.contextmanager
def _opened(name: str) -> Iterator[int]:
    directory: Path = settings.SANDUK_HOME / "locks"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = "".join(c if c.isalnum() or c in "-." else "_" for c in name)[:120]
    descriptor = os.open(directory / file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _taken(descriptor: int, *, shared: bool = False) -> bool:
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
