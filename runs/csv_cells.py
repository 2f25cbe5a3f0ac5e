"""Texts in CSV that a table program takes for texts, never for formulas."""

from __future__ import annotations

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_MARK = "'"


def safe(text: str) -> str:
    """The text with a mark before what would begin a formula; `unsafe` takes it off."""
    return f"{_MARK}{text}" if text.startswith((*_FORMULA, _MARK)) else text


def unsafe(cell: str) -> str:
    """What `safe` was given."""
    return cell.removeprefix(_MARK)
