"""`sanduk audit`: what people and rules did, and whether the record of it still stands."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from runs import audit, audit_export, audit_file
from runs.management.numbers import whole
from runs.management.terminal import SandukCommand, add_json_flag
from runs.models import AuditEvent
from runs.paths import expanded
from runs.refusal import Refusal
from runs.visible import visible

DETAIL_MAX = 120
_FILTERS = ("subject", "action", "who", "since", "until")


class Command(SandukCommand):
    help = (
        "List the newest audit events, the newest last. export writes all that are chosen, as "
        "JSON lines or CSV, into FILE (which must not be there yet) or on standard output. verify "
        "checks that no event was changed, left out, put in between or cut off, and exits 1 when "
        "one was; with FILE, those of an export: of a chosen part, that each is as it was written."
    )
    examples = (
        "audit",
        "audit --subject outbox:17",
        "audit verify",
        "audit export record.jsonl",
        "audit export decisions.csv --action outbox.approve --since 2026-11-01",
        "audit verify record.jsonl",
    )
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("verb", nargs="?", default="", choices=("", "export", "verify"),
                            metavar="export|verify")  # fmt: skip
        parser.add_argument("file", nargs="?", default="", metavar="FILE")
        parser.add_argument("--verify", action="store_true", help="as the word verify")
        parser.add_argument("--subject", default="", metavar="TEXT", help="only of this, as run:ab")
        parser.add_argument("--action", default="", metavar="NAME", help="only this, as run.stop")
        parser.add_argument(
            "--who", default="", metavar="NAME", help="only what this person or account did"
        )
        parser.add_argument("--since", default="", metavar="TIME", help="as 2026-11-30; UTC")
        parser.add_argument("--until", default="", metavar="TIME", help="before then; UTC")
        parser.add_argument("--limit", type=whole(), default=None, metavar="N", help="default: 30")
        parser.add_argument(
            "--format", default="", choices=tuple(audit_export.FORMATS), dest="kind",
            help="of an export; default: what FILE ends with, else jsonl",
        )  # fmt: skip
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        verb = "verify" if options["verify"] else options["verb"]
        filters = {name: options[name] for name in _FILTERS if options[name]}
        if options["kind"] and verb != "export":
            raise Refusal("--format goes with export")
        if options["limit"] and verb:
            raise Refusal(f"--limit is for the list; it goes without {verb}")
        if verb == "verify":
            if filters:
                raise Refusal(f"verify checks every event; it goes without --{next(iter(filters))}")
            return self._verify(options["file"], as_json=options["json"])
        found = audit_export.chosen(
            subject=options["subject"],
            action=options["action"],
            who=options["who"],
            since=_moment("since", options["since"]),
            until=_moment("until", options["until"]),
        )
        if verb == "export":
            if options["json"]:
                raise Refusal("--json goes without export: --format jsonl")
            return self._export(found, filters, options["file"], options["kind"])
        return self._list(found, options["limit"] or 30, as_json=options["json"])

    def _list(self, found: Any, limit: int, *, as_json: bool) -> int:
        events = list(found.order_by("-number")[:limit])[::-1]
        if as_json:
            self.print_json([_as_json(event) for event in events])
        elif not events:
            self.say("no such events")
        else:
            headings = ("NUMBER", "AT", "WHO", "ACTION", "SUBJECT", "DETAIL")
            self.print_table(headings, [_cells(event) for event in events])
        return 0

    def _export(self, found: Any, filters: dict[str, str], file: str, kind: str) -> int:
        kind = kind or ("csv" if file.lower().endswith(".csv") else "jsonl")
        pieces = audit_export.written(found, kind, filters)
        if not file or file == "-":
            if kind == "csv" and sys.stdout.isatty():
                raise Refusal("what a table holds may move a terminal's cursor; name a FILE")
            for piece in pieces:
                self.print(piece.rstrip("\r\n"))  # JSON is in ASCII
            return 0
        path = expanded(file, what="FILE")
        _write(path, pieces)
        self.say(f"{found.count():,} events are in {path}; sanduk audit verify {path}")
        return 0

    def _verify(self, file: str, *, as_json: bool) -> int:
        if file:
            return self._verify_file(expanded(file, what="FILE"), as_json=as_json)
        found = audit.verify()
        if as_json:
            self.print_json(dataclasses.asdict(found))
        else:
            for trouble in found.troubles:
                self.print(visible(trouble))
            stands = "does not stand" if found.troubles else "stands"
            self.print(f"{found.events} events; the record {stands}")
            if found.unwitnessed:
                self.print(f"the last {found.unwitnessed} are not covered by the hash kept outside")
        return 1 if found.troubles else 0

    def _verify_file(self, path: Path, *, as_json: bool) -> int:
        found = audit_file.checked(path)
        if as_json:
            self.print_json(dataclasses.asdict(found))
            return 1 if found.troubles else 0
        for trouble in found.troubles:
            self.print(visible(trouble))
        for line in _told(found):
            self.print(line)
        return 1 if found.troubles else 0


def _told(found: audit_file.Checked) -> Iterable[str]:
    stands = "it does not stand" if found.troubles else "each is as it was written"
    yield f"{found.events} events; {stands}"
    if not found.is_whole:
        yield (
            f"they are a part, with {found.gaps} gap(s), or a table, which does not say: whether "
            "one is missing there is not known"
        )
    if found.compared:
        yield "they were held against the record of this installation"
    if found.events:
        yield f"the last is {found.last_number} {found.last_sha256}"


def _moment(name: str, text: str) -> dt.datetime | None:
    if not text:
        return None
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        raise Refusal(f"--{name} {text!r} is no time, as 2026-11-30 or 2026-11-30T08:00") from None
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def _write(path: Path, pieces: Iterable[str]) -> None:
    """A new file of 0600, whole or not at all."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileExistsError:
        raise Refusal(f"{path} is there already; an export replaces nothing") from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _as_json(event: AuditEvent) -> dict[str, Any]:
    return {
        "number": event.number,
        "at": event.at.isoformat(),
        "who": _who(event),
        "action": event.action,
        "subject": event.subject,
        "detail": event.detail,
        "sha256": event.sha256,
    }


def _who(event: AuditEvent) -> str:
    return event.actor.get_username() if event.actor else event.account


def _cells(event: AuditEvent) -> list[str]:
    detail = json.dumps(event.detail, ensure_ascii=False) if event.detail else ""
    return [
        str(event.number),
        f"{event.at:%Y-%m-%d %H:%M:%S}",
        visible(_who(event)),
        event.action,
        visible(event.subject),
        visible(detail, limit=DETAIL_MAX),
    ]
