"""`sanduk inbox`: the messages that wait to be read, and those that were."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from assistants.models import InboxMessage
from assistants.named import one_assistant
from runs.management.numbers import whole
from runs.management.terminal import SandukCommand, add_json_flag
from runs.visible import visible

COLUMNS = ("ID", "ASSISTANT", "RECEIVED (UTC)", "FROM", "STATE", "TEXT")


class Command(SandukCommand):
    help = "List the messages that wait for assistants, oldest first."
    examples = ("inbox", "inbox --name daily-report --all", "inbox --json")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", default="", metavar="NAME", help="only this assistant's")
        parser.add_argument(
            "--all", action="store_true", help="the newest, those that were read or taken back too"
        )
        parser.add_argument(
            "--limit", type=whole(high=100_000), default=100, metavar="N", help="at most N (100)"
        )
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        rows = InboxMessage.objects.select_related("assistant", "author")
        if options["name"]:
            rows = rows.filter(assistant=one_assistant(options["name"]))
        if options["all"]:
            chosen = list(rows.order_by("-created_at", "-pk")[: options["limit"]])[::-1]
        else:
            waiting = rows.filter(consumed_at=None, withdrawn_at=None, assistant__removed_at=None)
            chosen = list(waiting[: options["limit"]])
        if options["json"]:
            self.print_json([_as_json(each) for each in chosen])
        elif not chosen:
            self.say("no message is waiting" if not options["all"] else "no messages yet")
        else:
            self.print_table(COLUMNS, [_cells(each) for each in chosen])
        return 0


def _state(message: InboxMessage) -> str:
    if message.consumed_at:
        return "read"
    return "taken back" if message.withdrawn_at else "waiting"


def _cells(message: InboxMessage) -> tuple[str, ...]:
    sender = str(message.author) if message.author else message.account
    return (
        str(message.pk),
        message.assistant.name,
        f"{message.created_at:%Y-%m-%d %H:%M}",
        visible(sender or message.source or "-", limit=30),
        _state(message),
        visible(" ".join(message.body[:400].split()), limit=80),
    )


def _as_json(message: InboxMessage) -> dict[str, Any]:
    return {
        "id": message.pk,
        "assistant": message.assistant.name,
        "created_at": message.created_at,
        "state": _state(message).replace(" ", "_"),
        "source": message.source,
        "source_id": message.source_id,
        "author": str(message.author) if message.author else None,
        "account": message.account,
        "consumed_at": message.consumed_at,
        "consumed_by": message.consumed_by_id,
        "withdrawn_at": message.withdrawn_at,
        "body": message.body,
    }
