"""Edits of a JSON text that leave everything else in it as it was written."""

from __future__ import annotations

import json
import re

from recipes.spans import spans

_KEY_ALONE = re.compile(r'[ \t]*"(?:[^"\\]|\\.)*"[ \t]*:[ \t]*')


def put(text: str, path: str, value: str) -> str:
    """Replace the value at a path by a string. Raises KeyError: there is no such value."""
    span = spans(text)[path]
    return text[: span.start] + json.dumps(value, ensure_ascii=False) + text[span.end :]


def add_after(text: str, path: str, key: str, value: str) -> str:
    """Add a member behind another one, in the form that one has: on a line of its own, or not.

    Args:
        path: of the member it follows.

    Raises:
        KeyError: there is no such member.
    """
    span = spans(text)[path]
    line = text[text.rfind("\n", 0, span.start) + 1 : span.start]
    member = f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
    joint = ", "
    if _KEY_ALONE.fullmatch(line):
        newline = "\r\n" if "\r\n" in text else "\n"
        joint = f",{newline}{line[: len(line) - len(line.lstrip())]}"
    return text[: span.end] + joint + member + text[span.end :]


def drop(text: str, path: str) -> str:
    """Remove an element or a member, and the comma that parted it. Raises KeyError: none there."""
    found = spans(text)
    span = found[path]
    siblings = sorted(each for each in found.values() if each.parent == span.parent)
    at = siblings.index(span)
    if at > 0:
        return text[: siblings[at - 1].end] + text[span.end :]
    if len(siblings) > 1:
        return text[: span.outer] + text[siblings[1].outer :]
    whole = found[span.parent]
    return text[: whole.start + 1] + text[whole.end - 1 :]
