"""Delivers to a file: one line of JSON at its end, whole or not at all."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time

from assistants.delivery.kinds import FileSettings
from assistants.delivery.parcel import Failed, Parcel
from runs import clock

_PAUSE_S = 0.02
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def send(parcel: Parcel, settings: FileSettings, timeout_s: float) -> str:
    """Append the line and see it on the disk. Raises Failed."""
    line = json.dumps(parcel.facts(), ensure_ascii=False).encode() + b"\n"
    try:
        descriptor = os.open(settings.path, _FLAGS, 0o600)
        try:
            _append(descriptor, line, timeout_s)
        finally:
            os.close(descriptor)
    except OSError as exc:
        raise Failed(f"{settings.path}: {exc.strerror}") from None
    return ""


def _append(descriptor: int, line: bytes, timeout_s: float) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise Failed("it is no regular file", lasting=True)
    _lock(descriptor, timeout_s)
    before = os.fstat(descriptor).st_size
    try:
        written = os.write(descriptor, line)
        while written < len(line):
            written += os.write(descriptor, line[written:])
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, before)  # half a line would spoil the next one too
        raise


def _lock(descriptor: int, timeout_s: float) -> None:
    """Closing the descriptor lets go of it."""
    deadline = clock.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if clock.monotonic() >= deadline:
                raise Failed(f"somebody held it locked for {timeout_s:g} s") from None
        time.sleep(_PAUSE_S)
