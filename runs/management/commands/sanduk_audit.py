"""`sanduk audit`: what people and rules did, and whether the record of it still stands."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from django.core.management.base import CommandParser

from runs import audit
from runs.management.numbers import whole
from runs.management.terminal import SandukCommand, add_json_flag
from runs.models import AuditEvent
from runs.refusal import Refusal
from runs.visible import visible

DETAIL_MAX = 120


class Command(SandukCommand):
    help = (
        "List the newest audit events, the newest last. --verify checks that none was changed, "
        "left out, put in between or cut off; it exits 1 when one was."
    )
    examples = ("audit", "audit --subject outbox:17", "audit --verify")
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--verify", action="store_true", help="check the whole record")
        parser.add_argument("--subject", default="", metavar="TEXT", help="only of this, as run:ab")
        parser.add_argument("--limit", type=whole(), default=30, metavar="N", help="default: 30")
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        if options["verify"]:
            if options["subject"]:
                raise Refusal("--verify checks every event; it goes without --subject")
            return self._verify(as_json=options["json"])
        found = AuditEvent.objects.select_related("actor").order_by("-number")
        if options["subject"]:
            found = found.filter(subject=options["subject"])
        events = list(found[: options["limit"]])[::-1]
        if options["json"]:
            self.print_json([as_json(event) for event in events])
        elif not events:
            self.say("no such events")
        else:
            headings = ("NUMBER", "AT", "WHO", "ACTION", "SUBJECT", "DETAIL")
            self.print_table(headings, [_cells(event) for event in events])
        return 0

    def _verify(self, *, as_json: bool) -> int:
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


def as_json(event: AuditEvent) -> dict[str, Any]:
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
