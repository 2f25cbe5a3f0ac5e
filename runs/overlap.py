"""Whose directories are whose: what one live run writes in, no other one may write in."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.db import connection

from runs.engines.base import Mount
from runs.models import Run
from runs.refusal import Refusal

_LOCK = 0x73616E64756B  # any number that nothing else in this database takes


def look_alone() -> None:
    """Let nobody else look and begin before this transaction has ended.

    On SQLite no two transactions of ours go on at one time; on PostgreSQL both would find nothing.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def refuse_overlap(workspace: str, writable: Iterable[str], *, uid: str = "") -> None:
    """Refuse a run beside which another one would overwrite the same files.

    Args:
        workspace: where it works.
        writable: the directories lent to it read-write.
        uid: the run itself, where it is written down already.

    Raises Refusal, naming the other run.
    """
    lent = list(writable)
    for other in Run.objects.live().exclude(uid=uid).only("uid", "workspace", "order"):
        theirs, way = other.workspace, f"stop it with: sanduk stop {other.uid}"
        if _overlap(workspace, theirs):
            raise Refusal(f"run {other.uid} works in {theirs}; wait for it, or {way}")
        for source in lent:
            if _overlap(source, theirs):
                raise Refusal(
                    f"--mount {source}: run {other.uid} works in {theirs}; lend it read-only, "
                    f"wait for it, or {way}"
                )
        for source in writable_in(other.order):
            if _overlap(workspace, source):
                raise Refusal(
                    f"run {other.uid} was lent {source} to write in; wait for it, or {way}"
                )


def refuse_output(what: str, path: Path) -> None:
    """Refuse to write a copy where a live run works. Raises Refusal.

    Args:
        what: the flag and its value, for the message.
    """
    for other in Run.objects.live().only("uid", "workspace"):
        if _overlap(str(path), other.workspace):
            raise Refusal(f"{what}: run {other.uid} works in {other.workspace}; wait for it")


def notes(run: Run, mounts: Iterable[Mount]) -> Iterator[str]:
    """What a person should know of directories that may change while this run reads them."""
    others = list(Run.objects.live().exclude(pk=run.pk).only("uid", "workspace"))
    for mount in mounts:
        for other in others:
            if mount.read_only and _overlap(mount.source, other.workspace):
                yield f"{mount.source} may change meanwhile: run {other.uid} works there"


def writable_in(order: dict[str, Any]) -> list[str]:
    """The directories that a stored order lends read-write, as real paths."""
    found = []
    for text in order.get("mounts") or ():
        source, _, _ = str(text).removesuffix(":rw").rpartition(":")
        if str(text).endswith(":rw") and source:
            found.append(os.path.realpath(source))
    return found


def _overlap(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
