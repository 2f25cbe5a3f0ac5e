"""Snapshots and their differences in words and as plain data. What agents wrote is made visible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assistants.memory import trust
from assistants.memory.differences import Difference
from assistants.memory.manifest import Entry
from assistants.models import MemorySnapshot
from runs.visible import visible, visible_name

COLUMNS = ("ID", "TAKEN (UTC)", "MOMENT", "WAKEUP", "FILES", "SIZE", "NOT KEPT", "REVIEW", "DIGEST")


def size(count: int) -> str:
    if count < 10_000:
        return f"{count:,} B"
    return f"{count / 1000:,.0f} kB" if count < 10**7 else f"{count / 10**6:,.0f} MB"


def cells(snapshot: MemorySnapshot, in_force: MemorySnapshot | None = None) -> tuple[str, ...]:
    """A row of a table.

    Args:
        in_force: the memory in force, beside which an older one may be superseded.
    """
    superseded = ", superseded" if trust.is_superseded(snapshot, in_force) else ""
    return (
        str(snapshot.pk),
        f"{snapshot.taken_at:%Y-%m-%d %H:%M:%S}",
        snapshot.moment.replace("_", " "),
        str(snapshot.wakeup_id or "-"),
        f"{snapshot.files:,}",
        size(snapshot.size_bytes),
        str(len(snapshot.left_out) or "-"),
        snapshot.review.replace("_", " ") + superseded,
        snapshot.digest[:12],
    )


def facts(snapshot: MemorySnapshot) -> Iterator[str]:
    """What is known of a snapshot, one line each."""
    wakeup = f" wakeup {snapshot.wakeup_id}" if snapshot.wakeup_id else ""
    moment = snapshot.moment.replace("_", " ")
    yield f"snapshot {snapshot.pk}, {moment}{wakeup}, {snapshot.taken_at:%Y-%m-%d %H:%M:%S} UTC"
    files = "1 file" if snapshot.files == 1 else f"{snapshot.files:,} files"
    yield f"{files}, {size(snapshot.size_bytes)}, digest {snapshot.digest}"
    review = snapshot.review.replace("_", " ")
    if snapshot.reviewed_at:
        review += (
            f" by {visible(snapshot.reviewed_by)} at {snapshot.reviewed_at:%Y-%m-%d %H:%M} UTC"
        )
    reason = f": {visible(snapshot.reason)}" if snapshot.reason else ""
    yield f"review {review}{reason}"
    yield from left_out(snapshot)


def left_out(snapshot: MemorySnapshot, earlier: MemorySnapshot | None = None) -> Iterator[str]:
    """What a snapshot does not hold as it stood, without what was so in an earlier one."""
    known = {_told(each) for each in earlier.left_out} if earlier else set()
    for each in map(_told, snapshot.left_out):
        if each not in known:
            yield f"not kept {each}"


def entry_line(entry: Entry) -> str:
    name = visible_name(entry.name, limit=1000)
    if entry.kind == "link":
        return f"link           {'':>10}  {name} -> {visible_name(_text(entry.target), limit=300)}"
    if entry.kind == "directory":
        return f"directory {entry.mode:04o} {'':>10}  {name}/"
    return f"file      {entry.mode:04o} {entry.size:>10,}  {name}"


def as_json(snapshot: MemorySnapshot) -> dict[str, Any]:
    return {
        "id": snapshot.pk,
        "taken_at": snapshot.taken_at.isoformat(),
        "moment": snapshot.moment,
        "wakeup": snapshot.wakeup_id,
        "digest": snapshot.digest,
        "files": snapshot.files,
        "size_bytes": snapshot.size_bytes,
        "left_out": snapshot.left_out,
        "review": snapshot.review,
        "reviewed_at": snapshot.reviewed_at.isoformat() if snapshot.reviewed_at else None,
        "reviewed_by": snapshot.reviewed_by,
        "reason": snapshot.reason,
    }


def difference_as_json(difference: Difference) -> dict[str, Any]:
    return {
        "change": difference.change,
        "path": difference.name,
        "old": entry_as_json(difference.old),
        "new": entry_as_json(difference.new),
    }


def entry_as_json(entry: Entry | None) -> dict[str, Any] | None:
    """Bytes that are no UTF-8 are lone surrogates, which JSON writes as escapes."""
    if entry is None:
        return None
    return {
        "path": entry.name,
        "kind": entry.kind,
        "mode": f"{entry.mode:04o}",
        "size": entry.size,
        "sha256": entry.sha256,
        "target": _text(entry.target),
    }


def _told(left: dict[str, Any]) -> str:
    path, why = visible(str(left.get("path", ""))), visible(str(left.get("why", "")))
    return f"{path}: {why}" if path else why


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
