"""One item as it goes to one destination, and the ways that can end."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from assistants.models import Delivery

OUTPUT_MAX = 16 * 1024  # characters kept of what a receiver says
ERROR_MAX = 500


@dataclass(frozen=True, slots=True)
class Parcel:
    """What every sender gets.

    Args:
        key: the same for each attempt of one delivery: what a receiver tells doubles by.
        run: the uid of the run that wrote it; "" for none.
        number: 2 and more for one that is delivered again on purpose.
        subject: of a reminder that items wait, the first of which is `item`; "" for an item.
    """

    assistant: str
    item: int
    run: str
    key: str
    number: int
    created_at: dt.datetime
    sha256: str
    body: str
    subject: str = ""

    @property
    def title(self) -> str:
        return self.subject or f"{self.assistant}: item {self.item}"

    def facts(self) -> dict[str, Any]:
        """Everything of it, as JSON keeps it."""
        reminder = {"reminder": True} if self.subject else {}
        return {
            **reminder,
            "assistant": self.assistant,
            "item": self.item,
            "run": self.run,
            "delivery": self.key,
            "number": self.number,
            "created_at": self.created_at.isoformat(),
            "sha256": self.sha256,
            "body": self.body,
        }


class Failed(Exception):
    """It did not arrive. The text says why, in one line, and holds no secret.

    Args:
        output: what the receiver said; hostile.
        lasting: trying again will not help.
        wait_s: the receiver asked not to be tried again for so long.
    """

    def __init__(
        self, why: str, *, output: str = "", lasting: bool = False, wait_s: float = 0
    ) -> None:
        super().__init__(why)
        self.output, self.lasting, self.wait_s = output, lasting, wait_s


class Doubtful(Exception):
    """Whether it arrived is not known: only a person can tell. `output` as of Failed."""

    def __init__(self, why: str, *, output: str = "") -> None:
        super().__init__(why)
        self.output = output


def parcel_of(delivery: Delivery) -> Parcel:
    item = delivery.item
    run = item.wakeup.run if item.wakeup is not None else None
    return Parcel(
        assistant=item.assistant.name,
        item=item.pk,
        run=run.uid if run is not None else "",
        key=delivery.key,
        number=delivery.number,
        created_at=item.created_at,
        sha256=item.sha256,
        body=item.body,
    )


def kept(text: str) -> str:
    """What is stored of a receiver's words: storable, and cut where that shows."""
    text = text.encode("utf-8", "replace").decode().replace("\0", "\N{SYMBOL FOR NULL}")
    return text if len(text) <= OUTPUT_MAX else f"{text[:OUTPUT_MAX]}\n[cut here by sanduk]"
