"""Messages of an inbox as people and scripts see them."""

from __future__ import annotations

from typing import Any

from assistants.models import InboxMessage
from runs.visible import visible

COLUMNS = ("ID", "ASSISTANT", "RECEIVED (UTC)", "FROM", "STATE", "TEXT")


def as_json(message: InboxMessage) -> dict[str, Any]:
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


def _state(message: InboxMessage) -> str:
    if message.consumed_at:
        return "read"
    return "taken back" if message.withdrawn_at else "waiting"


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """The line of a message in a list, from what `as_json` says of it, here or elsewhere."""
    sender = row["author"] or row["account"] or row["source"] or "-"
    return (
        visible(str(row["id"]), limit=20),
        visible(str(row["assistant"]), limit=80),
        visible(str(row["created_at"]).replace("T", " ")[:16]),
        visible(str(sender), limit=30),
        visible(str(row["state"]).replace("_", " "), limit=20),
        visible(" ".join(str(row["body"])[:400].split()), limit=80),
    )


def chosen(rows: Any, *, everything: bool, limit: int) -> list[InboxMessage]:
    """Of `rows` those that wait, the oldest first; or the newest of all, the newest last."""
    rows = rows.select_related("assistant", "author")
    if everything:
        return list(rows.order_by("-created_at", "-pk")[:limit])[::-1]
    waiting = rows.filter(consumed_at=None, withdrawn_at=None, assistant__removed_at=None)
    return list(waiting[:limit])
