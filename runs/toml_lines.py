"""Finding the line of a key: the standard reader of TOML tells none."""

from __future__ import annotations

import re
import tomllib

_HEADER = re.compile(r"\s*\[")


def line_of(text: str, key: str, *, table: str = "", number: int = 0) -> int | None:
    """The line, counted from 1, where `key` is set.

    Args:
        text: a document that can be read.
        table: the array of tables it is in; "" for the top of the document.
        number: which of those tables, counted from 0.
    """
    lines = text.splitlines()
    start = _table_line(lines, table, number) if table else 0
    if start is None:
        return None
    written = re.compile(
        rf"""\s*(?:{re.escape(key)}|"{re.escape(key)}"|'{re.escape(key)}')\s*[=.]"""
    )
    heading = re.compile(rf"\s*\[+\s*[\"']?{re.escape(key)}[\"']?\s*[\].]")
    for index in range(start, len(lines)):
        if not table and heading.match(lines[index]) and _starts_here(lines, index):
            return index + 1
        if written.match(lines[index]) and _starts_here(lines, index):
            inside = _last_header(lines, start, index)
            if inside is None:
                return index + 1
    return None


def _table_line(lines: list[str], table: str, number: int) -> int | None:
    """The index of the line after that table's header."""
    header = re.compile(rf"\s*\[\[\s*{re.escape(table)}\s*\]\]")
    found = [
        index
        for index, line in enumerate(lines)
        if header.match(line) and _starts_here(lines, index)
    ]
    return found[number] + 1 if number < len(found) else None


def _last_header(lines: list[str], start: int, end: int) -> int | None:
    for index in range(start, end):
        if _HEADER.match(lines[index]) and _starts_here(lines, index):
            return index
    return None


def _starts_here(lines: list[str], index: int) -> bool:
    """Whether a statement begins on this line: it is not the middle of a string or a list."""
    try:
        tomllib.loads("\n".join(lines[:index]) + "\n")
    except tomllib.TOMLDecodeError:
        return False
    return True
