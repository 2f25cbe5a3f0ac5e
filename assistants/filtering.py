"""Which items of the outbox somebody looks at, and the ways to look that they keep by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from assistants.models import OutboxFilter, OutboxItem
from assistants.models.assistant import NAME
from runs.refusal import Refusal
from runs.visible import visible

SHOWS = {
    "waiting": ("Waiting", ["pending"]),
    "approved": ("Approved, on the way", ["approved"]),
    "done": ("Decided", ["delivered", "rejected", "expired"]),
    "all": ("All", list(OutboxItem.State.values)),
}
RISKS = {
    "": "all of them",
    "flagged": "with something to look at first",
    "secret": "with a possible secret",
    "memory": "from unreviewed memory",
    "clear": "with none of these",
}
KEPT_MAX, NAME_MAX = 30, 60


class Filter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Args:
    assistant: a name; "" for all.
    mine: only of assistants that belong to who looks.
    """

    show: str = "waiting"
    assistant: str = ""
    risk: str = ""
    mine: bool = False

    @property
    def query(self) -> str:
        """Everything but `show`, as an address has it; "" for nothing."""
        words = {"assistant": self.assistant, "risk": self.risk, "mine": "1" if self.mine else ""}
        return urlencode({name: value for name, value in words.items() if value})

    @property
    def address(self) -> str:
        """The whole of it, as an address has it."""
        return f"?show={self.show}" + (f"&{self.query}" if self.query else "")


def said(given: Mapping[str, str]) -> Filter | None:
    """What an address or a form says; None when it is no filter."""
    found = Filter(
        show=given.get("show", "waiting"),
        assistant=given.get("assistant", ""),
        risk=given.get("risk", ""),
        mine=given.get("mine", "") == "1",
    )
    is_name = not found.assistant or NAME.regex.fullmatch(found.assistant)  # type: ignore[union-attr]
    return found if found.show in SHOWS and found.risk in RISKS and is_name else None


def found_by(chosen: Filter, items: QuerySet[OutboxItem], user: Any) -> QuerySet[OutboxItem]:
    """The items that a filter lets pass; what waits, the oldest first."""
    secret, memory = ~Q(secrets_found=[]), Q(unreviewed_memory=True)
    by_risk = {
        "": Q(), "flagged": secret | memory, "secret": secret, "memory": memory,
        "clear": ~secret & ~memory,
    }  # fmt: skip
    items = items.filter(by_risk[chosen.risk], state__in=SHOWS[chosen.show][1])
    if chosen.assistant:
        items = items.filter(assistant__name=chosen.assistant)
    if chosen.mine:
        items = items.filter(assistant__owner=user)
    oldest = chosen.show == "waiting"
    return items.order_by(*(("created_at", "pk") if oldest else ("-created_at", "-pk")))


def kept(user: Any) -> list[tuple[OutboxFilter, Filter]]:
    """Those that somebody keeps, by name."""
    rows = OutboxFilter.objects.filter(user=user).order_by("name")
    found = []
    for row in rows:
        try:
            found.append((row, msgspec.convert(row.words, Filter)))
        except msgspec.ValidationError:
            continue  # of another version; it can be kept anew
    return found


def keep(user: Any, name: str, chosen: Filter) -> None:
    """Keep a filter under a name, in place of the one that had it. Raises Refusal."""
    name = name.strip()
    if not name or len(name) > NAME_MAX or not name.isprintable():
        raise Refusal(f"a filter's name has 1 to {NAME_MAX} printable characters")
    others = OutboxFilter.objects.filter(user=user).exclude(name=name)
    if others.count() >= KEPT_MAX:
        raise Refusal(f"you keep {KEPT_MAX} filters already; forget one first")
    words = msgspec.to_builtins(chosen)
    try:
        with transaction.atomic():
            OutboxFilter.objects.update_or_create(user=user, name=name, defaults={"words": words})
    except IntegrityError:
        raise Refusal(f"{visible(name)} was kept just now by another page of yours") from None


def forget(user: Any, name: str) -> None:
    """Raises Refusal when there is none of that name."""
    if not OutboxFilter.objects.filter(user=user, name=name).delete()[0]:
        raise Refusal("there is no such filter of yours")
