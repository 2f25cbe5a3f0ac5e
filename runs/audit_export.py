"""The audit record as a file: JSON lines or CSV, each event with its place in the chain.

JSON lines begin with a line about the export itself: what was chosen, how many events that were,
and the last event there was. A table has no place for that.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import QuerySet

from runs import clock, csv_cells
from runs.installation import install_id
from runs.models import AuditEvent

FORMATS = {"jsonl": "application/jsonl; charset=utf-8", "csv": "text/csv; charset=utf-8"}
KIND = "sanduk-audit-1"
# what the hash of an event covers, and who the actor's number was when it was exported
COLUMNS = (
    "number", "at", "actor", "who", "account", "action", "subject", "detail", "previous", "sha256",
)  # fmt: skip


def chosen(
    *,
    subject: str = "",
    action: str = "",
    who: str = "",
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
) -> QuerySet[AuditEvent]:
    """The events of this subject, action and person, from `since` on and before `until`."""
    found: QuerySet[AuditEvent] = AuditEvent.objects.select_related("actor")
    if subject:
        found = found.filter(subject=subject)
    if action:
        found = found.filter(action=action)
    if who:
        found = found.filter(actor__username=who) | found.filter(actor=None, account=who)
    if since is not None:
        found = found.filter(at__gte=since)
    return found.filter(at__lt=until) if until is not None else found


def written(found: QuerySet[AuditEvent], kind: str, filters: Mapping[str, Any]) -> Iterator[str]:
    """The file, piece by piece.

    Args:
        kind: one of FORMATS.
        filters: what `found` was chosen by, in words of the one who chose; empty: it is all.
    """
    last = AuditEvent.objects.order_by("-number").first()
    number = last.number if last is not None else 0
    # what is written meanwhile is none of it: the first line says how many there are
    rows = found.order_by("number").filter(number__lte=number)
    if kind == "csv":
        return _table(rows)
    head = {
        "export": KIND,
        "installation": install_id(),
        "made_at": clock.now().isoformat(timespec="seconds"),
        "filters": dict(filters),
        "events": rows.count(),
        "last": {"number": number, "sha256": last.sha256 if last is not None else ""},
    }
    return _lines(head, rows)


def _lines(head: dict[str, Any], rows: QuerySet[AuditEvent]) -> Iterator[str]:
    yield f"{json.dumps(head)}\n"
    for event in rows.iterator(chunk_size=500):
        yield f"{json.dumps(as_facts(event))}\n"


def _table(rows: QuerySet[AuditEvent]) -> Iterator[str]:
    yield _row(COLUMNS)
    for event in rows.iterator(chunk_size=500):
        facts = as_facts(event)
        facts["detail"] = json.dumps(facts["detail"])
        cells = (facts[name] for name in COLUMNS)
        yield _row(csv_cells.safe("" if cell is None else str(cell)) for cell in cells)


def _row(cells: Any) -> str:
    into = io.StringIO()
    csv.writer(into).writerow(cells)
    return into.getvalue()


def as_facts(event: AuditEvent) -> dict[str, Any]:
    """All of an event, as its hash covers it; and `who`, which it does not."""
    return {
        "number": event.number,
        **event.facts(),
        "who": event.actor.get_username() if event.actor else event.account,
        "previous": event.previous,
        "sha256": event.sha256,
    }
