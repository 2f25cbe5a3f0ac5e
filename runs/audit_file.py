"""Whether an exported audit record is as it was written. The file may be anybody's: hostile."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from runs import audit_head, csv_cells
from runs.audit import TROUBLES_MAX
from runs.audit_export import COLUMNS, KIND
from runs.installation import install_id
from runs.models import AuditEvent
from runs.refusal import Refusal

LINE_MAX = 4 * 2**20  # characters; an event's reason has at most 20,000
_BATCH = 500
_FACTS = ("at", "actor", "account", "action", "subject", "detail")


@dataclass(slots=True)
class Checked:
    """What an export holds.

    Attributes:
        events: how many.
        gaps: places where the events between two were not chosen: nothing is known of those.
        is_whole: whether it says that it is the whole record, up to when it was made.
        compared: whether each event was held against this installation's own record.
        troubles: what is wrong, in words, the first TROUBLES_MAX.
    """

    events: int = 0
    gaps: int = 0
    is_whole: bool = False
    compared: bool = False
    last_number: int = 0
    last_sha256: str = ""
    troubles: list[str] = field(default_factory=list)

    def blame(self, trouble: str) -> None:
        if len(self.troubles) < TROUBLES_MAX:
            self.troubles.append(trouble)


def checked(path: Path) -> Checked:
    """Check the hash of every event in the file, and that each follows the one before.

    Raises Refusal for a file that is no export, OSError.
    """
    with path.open(encoding="utf-8", newline="") as file:
        try:
            first = file.read(1)
            file.seek(0)
            return _of_lines(file) if first == "{" else _of_table(file)
        except UnicodeDecodeError:
            raise _none(path.name) from None
        except (_NoExport, csv.Error):
            raise _none(path.name) from None


class _NoExport(Exception):
    pass


def _none(name: str) -> Refusal:
    return Refusal(f"{name} is no export of an audit record; sanduk audit export FILE makes one")


def _of_lines(file: IO[str]) -> Checked:
    found = Checked()
    lines = _read_lines(file)
    head = _parsed(next(lines, ""))
    last = head.get("last")
    if head.get("export") != KIND or not isinstance(last, dict):
        raise _NoExport
    found.is_whole = head.get("filters") == {}
    _check(found, map(_parsed, lines), is_ours=head.get("installation") == install_id())
    if head.get("events") != found.events:
        found.blame(f"it says that it holds {head.get('events')} events, and holds {found.events}")
    if found.is_whole and found.events:
        is_last = (found.last_number, found.last_sha256) == (last.get("number"), last.get("sha256"))
        if not is_last:
            found.blame(f"its last event is {found.last_number}, and not the one it says")
    return found


def _read_lines(file: IO[str]) -> Iterator[str]:
    while line := file.readline(LINE_MAX):
        if len(line) == LINE_MAX:
            raise _NoExport
        yield line


def _parsed(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise _NoExport from None
    if not isinstance(found, dict):
        raise _NoExport
    return found


def _of_table(file: IO[str]) -> Checked:
    csv.field_size_limit(LINE_MAX)
    rows = csv.reader(file, strict=True)
    if tuple(next(rows, ())) != COLUMNS:
        raise _NoExport
    found = Checked()
    _check(found, map(_from_cells, rows), is_ours=False)
    return found


def _from_cells(cells: list[str]) -> dict[str, Any]:
    if len(cells) != len(COLUMNS):
        raise _NoExport
    given: dict[str, Any] = dict(zip(COLUMNS, map(csv_cells.unsafe, cells), strict=True))
    try:
        given["number"] = int(given["number"])
        given["actor"] = int(given["actor"]) if given["actor"] else None
        given["detail"] = json.loads(given["detail"])
    except (ValueError, RecursionError):
        raise _NoExport from None
    return given


def _check(found: Checked, events: Iterable[dict[str, Any]], *, is_ours: bool) -> None:
    """Fill in what the events come to, in one pass."""
    batch: dict[int, str] = {}
    for event in events:
        number, previous, sha256 = _place(event)
        if number <= found.last_number:
            found.blame(f"event {number} stands behind event {found.last_number}")
        elif number > found.last_number + 1:
            found.gaps += 1
            if found.is_whole:
                found.blame(f"events {found.last_number + 1} to {number - 1} are missing")
        elif previous != found.last_sha256:
            found.blame(f"event {number} does not follow the one before it")
        facts = {name: event.get(name) for name in _FACTS}
        if audit_head.chained(number, previous, facts) != sha256:
            found.blame(f"event {number} was changed after it was written")
        found.events += 1
        found.last_number, found.last_sha256 = number, sha256
        batch[number] = sha256
        if len(batch) == _BATCH:
            is_ours = _compare(found, batch, is_ours=is_ours)
            batch = {}
    _compare(found, batch, is_ours=is_ours)


def _place(event: dict[str, Any]) -> tuple[int, str, str]:
    number, previous, sha256 = (event.get(name) for name in ("number", "previous", "sha256"))
    is_one = isinstance(number, int) and isinstance(previous, str) and isinstance(sha256, str)
    if not is_one or not 0 < number < 2**63:  # type: ignore[operator]
        raise _NoExport
    return number, previous, sha256  # type: ignore[return-value]


def _compare(found: Checked, batch: dict[int, str], *, is_ours: bool) -> bool:
    """Hold events against the record here, when they are of it: one that is the same says so."""
    here = dict(AuditEvent.objects.filter(number__in=batch).values_list("number", "sha256"))
    is_ours = is_ours or any(here.get(number) == sha256 for number, sha256 in batch.items())
    if is_ours and batch:
        found.compared = True
        for number, sha256 in batch.items():
            if here.get(number) != sha256:
                found.blame(f"event {number} is not the one in this installation's record")
    return is_ours
