"""What an agent writes for us beside its work, and how a path of bytes is kept as text."""

from __future__ import annotations

import os
import re

# never part of a change: skills, artifacts and the results contract are read from there
OWN = (b".sanduk", b".sandkeep")

_SPELLED = re.compile(r"\\(?:\\|x([0-9a-f]{2}))")


def is_ours(path: bytes) -> bool:
    """Whether a path of the result is one of ours, or below one: it never lands."""
    return path.split(b"/", 1)[0].lower() in OWN


def spelled(path: bytes) -> str:
    r"""A path as text that any database keeps and any terminal prints: `a\xff`, `a\x0a`, `a\\b`.

    Two paths are never spelled the same.
    """
    text = os.fsdecode(path) if isinstance(path, bytes) else path
    return "".join(map(_one, text))


def unspelled(text: str) -> bytes:
    """The path that `spelled` wrote."""
    parts, end = [], 0
    for found in _SPELLED.finditer(text):
        parts += [text[end : found.start()].encode(), _byte(found[1])]
        end = found.end()
    return b"".join([*parts, text[end:].encode()])


def _byte(digits: str | None) -> bytes:
    return b"\\" if digits is None else bytes.fromhex(digits)


def _one(char: str) -> str:
    if char == "\\":
        return r"\\"
    if char.isprintable():
        return char
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))
