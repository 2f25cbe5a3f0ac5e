"""The hash chain of audit events, and its last hash kept in a file outside the database.

Whoever can write in the database can write a whole new chain, but not cut or replace the end of
the old one without this file saying so.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings


@dataclass(frozen=True, slots=True)
class Head:
    """The last event of the chain: its number and its hash."""

    number: int
    sha256: str


def chained(number: int, previous: str, facts: dict[str, Any]) -> str:
    """The hash of one event at its place. `facts` must be what JSON can hold."""
    # as it comes back from the database: names are texts there, and sort as such
    plain = json.loads(json.dumps(facts))
    covered = {**plain, "number": number, "previous": previous}
    text = json.dumps(covered, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def path() -> Path:
    home: Path = settings.SANDUK_HOME
    return home / "audit-head"


def kept() -> Head | None:
    """What the file says; None when there is none. Raises ValueError, OSError."""
    try:
        number, sha256 = path().read_text().split()
    except FileNotFoundError:
        return None
    return Head(int(number), sha256)


def keep(head: Head, is_ours: Callable[[Head], bool]) -> None:
    """Replace the file by a later head, whole or not at all.

    Args:
        is_ours: whether the head in the file is in the database. When it is not, the chain was cut
            or replaced, and the file stays: it is the evidence.

    Raises OSError.
    """
    path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(
        path().with_name("audit-head.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            before = kept()
        except ValueError:
            return  # damaged: what it said is for a person to find out
        if before is None or (before.number < head.number and is_ours(before)):
            _replace(head)
    finally:
        os.close(lock)


def _replace(head: Head) -> None:
    draft = path().with_name(f".audit-head.{os.getpid()}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(draft, flags, 0o600), "w") as file:
            file.write(f"{head.number} {head.sha256}\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path())
    finally:
        draft.unlink(missing_ok=True)
