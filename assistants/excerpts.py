"""The beginning of what an item says, for lists: a body may be megabytes long."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Substr

from assistants.models import Assistant

BEGINS = 400  # characters
TITLE = 120


def begun(items: QuerySet[Any]) -> QuerySet[Any]:
    """Items without their bodies, whose beginning is `begins`."""
    found: QuerySet[Any] = items.annotate(begins=Substr("body", 1, BEGINS)).defer("body")
    return found


def title(begins: str) -> str:
    """The first line with words in it, without the marks of a heading; hostile."""
    for line in begins.splitlines():
        words = line.strip().lstrip("#").strip()
        if words:
            return words[:TITLE]
    return "(empty)"


def destinations(assistant: Assistant) -> list[str]:
    """The names of where its items go; prefetch `destinations` for a list."""
    return [each.name for each in assistant.destinations.all() if each.removed_at is None]
