"""Delivers to a file: one line of JSON at its end, whole or not at all."""

from __future__ import annotations

import fcntl
import json
import os
import stat

from assistants.delivery.kinds import FileSettings
from assistants.delivery.parcel import Failed, Parcel

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def send(parcel: Parcel, settings: FileSettings, timeout_s: float) -> str:
    """Append the line and see it on the disk. Raises Failed."""
    line = json.dumps(parcel.facts(), ensure_ascii=False).encode() + b"\n"
    try:
        descriptor = os.open(settings.path, _FLAGS, 0o600)
        try:
            _append(descriptor, line)
        finally:
            os.close(descriptor)
    except OSError as exc:
        raise Failed(f"{settings.path}: {exc.strerror}") from None
    return ""


def _append(descriptor: int, line: bytes) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise Failed("it is no regular file", lasting=True)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Failed("somebody else holds it locked") from None
    before = os.fstat(descriptor).st_size
    try:
        written = os.write(descriptor, line)
        while written < len(line):
            written += os.write(descriptor, line[written:])
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, before)  # half a line would spoil the next one too
        raise
