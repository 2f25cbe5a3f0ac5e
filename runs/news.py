"""What the apps above have to tell people of by e-mail: nothing here imports them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """What one person wants to be told of.

    Args:
        of_waiting: of what waits for a decision that they may take.
        of_troubles: of what needs a look, as far as they see it.
        after, until: of what came in between; later than the one, no later than the other.
    """

    user: Any
    of_waiting: bool
    of_troubles: bool
    after: dt.datetime
    until: dt.datetime


@dataclass(frozen=True, slots=True)
class News:
    """So many of one kind: in words for one and for several, and the page that shows them.

    `names` is what each of them belongs to. It holds nothing that an agent wrote.
    """

    names: tuple[str, ...]
    one: str
    many: str
    page: str


Source = Callable[[Asked], Iterable[News]]

_asked: dict[str, Source] = {}


def register(app: str, source: Source) -> None:
    """Have an app asked, whenever somebody may be told."""
    _asked[app] = source


def of(asked: Asked) -> list[News]:
    """What there is to tell; nothing of which there is none."""
    return [news for source in _asked.values() for news in source(asked) if news.names]
