"""Matching paths as a file system without letter case would: rules are not evaded by spelling."""

from __future__ import annotations

import re
from functools import cache

from changes.names import folded


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A glob over folded paths: `*` and `?` stay within one name, `**/` is any depth, also none.

    A pattern without a slash is a name at any depth; one that ends in a slash is all below it.
    """
    pattern = folded(pattern.encode())
    if pattern.endswith("/"):
        pattern += "**"
    if "/" not in pattern:
        pattern = f"**/{pattern}"
    pattern = pattern.removeprefix("/")
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    meant = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(meant.get(part, re.escape(part)) for part in parts), re.DOTALL)


def matches(path: bytes, patterns: tuple[str, ...]) -> bool:
    """Whether one of the globs names this path."""
    text = folded(path)
    return any(compiled(pattern).fullmatch(text) for pattern in patterns)
