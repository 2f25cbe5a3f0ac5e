"""Where each value of a JSON text stands: for line numbers, and for edits that keep its form."""

from __future__ import annotations

import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import NamedTuple

_SPACE = re.compile(r"[ \t\n\r]*")
_ATOM = re.compile(r"[^\s,:\[\]{}\"]+")


class Span(NamedTuple):
    """From the first character of a value to after its last, as offsets into the text."""

    start: int
    end: int
    outer: int  # where the key begins, for a value that has one; else `start`
    parent: str  # the path of what holds it


def spans(text: str) -> dict[str, Span]:
    """The span of every value by its path (`$.sections[0].install[1]`).

    Args:
        text: JSON that has been parsed without an error; anything else gives a wrong answer or
            ValueError.
    """
    found: dict[str, Span] = {}
    try:
        _value(text, 0, "$", found)
    except IndexError:
        raise ValueError("the JSON ends too early") from None
    return found


def line_of(text: str, path: str) -> int | None:
    """The line, from 1, on which the value of a path begins; None when there is none."""
    try:
        span = spans(text).get(path)
    except ValueError:
        return None
    return text.count("\n", 0, span.start) + 1 if span else None


def _value(
    text: str,
    at: int,
    path: str,
    found: dict[str, Span],
    key: int | None = None,
    parent: str = "",
) -> int:
    """Read one value; returns where it ends."""
    at = _skip(text, at)
    start = at
    opening = text[at]
    if opening == "{":
        at = _members(text, at + 1, path, found)
    elif opening == "[":
        at = _elements(text, at + 1, path, found)
    elif opening == '"':
        at = scanstring(text, at + 1)[1]
    elif match := _ATOM.match(text, at):
        at = match.end()
    else:
        raise ValueError(f"no JSON value at {at}")
    found[path] = Span(start, at, start if key is None else key, parent)
    return at


def _members(text: str, at: int, path: str, found: dict[str, Span]) -> int:
    at = _skip(text, at)
    while text[at] != "}":
        begin = at
        key, at = scanstring(text, at + 1)
        at = _skip(text, at) + 1  # the colon
        at = _skip(text, _value(text, at, f"{path}.{key}", found, begin, path))
        if text[at] == ",":
            at = _skip(text, at + 1)
    return at + 1


def _elements(text: str, at: int, path: str, found: dict[str, Span]) -> int:
    at = _skip(text, at)
    index = 0
    while text[at] != "]":
        at = _skip(text, _value(text, at, f"{path}[{index}]", found, None, path))
        index += 1
        if text[at] == ",":
            at = _skip(text, at + 1)
    return at + 1


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
