"""Secrets, and what looks like one, in what a wakeup remembered: in names and in contents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.conf import settings
from django.core.cache import cache

from assistants.memory.comparing import compared, earlier
from assistants.memory.differences import Difference
from assistants.memory.manifest import Damaged, Entry
from assistants.memory.snapshots import store_of
from assistants.memory.store import Store
from assistants.models import MemorySnapshot
from runs import secret_scan
from runs.hidden import Hiding
from runs.secret_scan import SCAN_MAX, Finding
from runs.visible import visible, visible_name

ALL_BYTES = 4 * SCAN_MAX  # of all contents of one difference
LIST_BYTES = 256 * 1024  # of them for a mark in a list
KEPT_S = 24 * 3600
TOLD_MAX = 20


@dataclass(frozen=True, slots=True)
class Found:
    """Args:
    line: where and what, safe to print, without the secret itself.
    is_unchecked: something could not be looked at, which is no all-clear.
    """

    line: str
    is_unchecked: bool = False


def findings(snapshot: MemorySnapshot) -> list[Found]:
    """What to look at before the memory is trusted, capped.

    Like the gate's, it is of what is new: the page shows the same difference.
    """
    return _findings(snapshot, earlier(snapshot), *secret_scan.held_secrets(), ALL_BYTES)


def marks(
    snapshot: MemorySnapshot,
    before: MemorySnapshot | None,
    held: dict[str, str],
    problems: list[Finding],
) -> frozenset[str]:
    """For a list: "secret" and "unknown" where `findings` has such, kept for a while.

    Only so much is looked at as a list can wait for; what is beyond is unknown.

    Args:
        before: what it is a change of.
        held, problems: of `secret_scan.held_secrets`.
    """
    place = (settings.SANDUK_HOME, snapshot.pk, snapshot.digest, before.digest if before else "")
    told = "\0".join(map(str, (*place, *sorted(held.items()))))
    name = f"memory-marks-{hashlib.sha256(told.encode('utf-8', 'replace')).hexdigest()}"
    kept: frozenset[str] | None = cache.get(name)
    if kept is None:
        found = _findings(snapshot, before, held, problems, LIST_BYTES)
        kept = frozenset("unknown" if each.is_unchecked else "secret" for each in found)
        cache.set(name, kept, KEPT_S)
    return kept


def _findings(
    snapshot: MemorySnapshot,
    before: MemorySnapshot | None,
    held: dict[str, str],
    problems: list[Finding],
    most: int,
) -> list[Found]:
    try:
        found = compared(snapshot.assistant, before, snapshot)
        told = [*map(_found, problems), *_of_all(found, store_of(snapshot.assistant), held, most)]
    except (Damaged, OSError) as exc:
        told = [Found(f"the snapshot cannot be read: {exc}", is_unchecked=True)]
    hiding = Hiding(held.values())
    shown = [Found(visible(hiding.text(each.line)), each.is_unchecked) for each in told[:TOLD_MAX]]
    more = len(told) - TOLD_MAX
    return [*shown, Found(f"and {more:,} more")] if more > 0 else shown


def _found(finding: Finding, where: str = "") -> Found:
    told = f"{where}: {finding.told()}" if where else finding.told()
    return Found(told, finding.kind == "unchecked")


def _of_all(
    found: Iterable[Difference], store: Store, held: dict[str, str], most: int
) -> Iterator[Found]:
    new = [each.new for each in found if each.new is not None]
    names = "\n".join(each.name for each in new).encode("utf-8", "surrogateescape")
    targets = b"\n".join(each.target for each in new if each.kind == "link")
    for what, data in (("the names of its files", names), ("where its links lead", targets)):
        yield from (_found(each, what) for each in secret_scan.scan_for(data, held))
    left = most
    for entry in new:
        if entry.kind != "file":
            continue
        if left <= 0:
            yield Found(f"what follows the first {most / 2**20:g} MB", is_unchecked=True)
            return
        limit = min(left, SCAN_MAX)
        data = _begin(store, entry, limit)
        left -= len(data)
        name = visible_name(entry.name, limit=300)
        if limit < len(data) and limit < SCAN_MAX:
            yield Found(f"{name}: what follows its beginning", is_unchecked=True)
            data = data[:limit]
        yield from (_found(each, name) for each in secret_scan.scan_for(data, held))


def _begin(store: Store, entry: Entry, most: int) -> bytes:
    """More than `most` of a content where it has more, so that the scan itself says that."""
    data = b""
    for piece in store.content(entry.sha256):
        data += piece
        if len(data) > most:
            break
    return data
