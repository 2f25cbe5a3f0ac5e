"""What a site elsewhere answers, as this sanduk expects it: read here alone, and strictly.

More than what is named here may be in an answer; it is left out. All text in it is hostile.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from runs.refusal import Refusal
from runs.site_login import Site
from runs.visible import visible

_Kind = TypeVar("_Kind")


class OddAnswer(Refusal):
    """A site answered what this sanduk does not expect."""


class Me(msgspec.Struct):
    """Who a token says that asks."""

    user: str
    roles: list[str]
    may_decide: bool
    expires_at: str


class Item(msgspec.Struct):
    """An item of the outbox, in a list."""

    id: int
    assistant: str
    run: str
    created_at: str
    state: str
    body: str


class Delivery(msgspec.Struct):
    destination: str
    state: str
    error: str


class WholeItem(Item):
    """One item with all that is said of it. `expect` is what an approval has to name."""

    risks: list[str]
    standing: list[str]
    goes_to: list[str]
    deliveries: list[Delivery]
    pending: bool
    expect: str


class Decided(msgspec.Struct):
    """Where an item stands after a decision; `missing` more approvals are needed."""

    state: str
    missing: int


class Message(msgspec.Struct):
    """A message of an inbox."""

    id: int
    assistant: str
    created_at: str
    state: str
    source: str
    account: str
    author: str | None
    body: str


class Told(msgspec.Struct):
    """A message that was put into an inbox. `new`: it had not arrived before."""

    id: int
    assistant: str
    new: bool
    disabled: bool


def read(site: Site, kind: type[_Kind], answer: Any) -> _Kind:
    """An answer of this site as what it must be. Raises OddAnswer when it is something else."""
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as exc:
        why = visible(str(exc), limit=200)
        raise OddAnswer(f"{site.url} did not answer as this sanduk expects: {why}") from None
