"""What all protocols share: reading counts that a stranger wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

MAX_USAGE_BYTES = 16 * 1024  # an object larger than this is no usage object
_MAX_OBJECTS = 64
_MAX_COUNT = 2**53
_MAX_MONEY = 1e9


@dataclass(frozen=True, slots=True)
class Reading:
    """What one JSON document says. Empty means: nothing."""

    model: str = ""
    usage: Mapping[str, Any] | None = None
    is_final: bool = True  # False: a later event will tell more


def usage_object(raw: msgspec.Raw | None) -> dict[str, Any] | None:
    """A usage object, or None for null, for other types and for one that is absurdly large."""
    if not raw:
        return None
    text = bytes(raw)
    if len(text) > MAX_USAGE_BYTES or not text.startswith(b"{") or text.count(b"{") > _MAX_OBJECTS:
        return None
    value = msgspec.json.decode(text)
    return value if isinstance(value, dict) else None


def name(value: object) -> str:
    """A model's name, cut at a length no real one has."""
    return value[:256] if isinstance(value, str) else ""


def count(value: object) -> int | None:
    """A token count, or None when it is not one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MAX_COUNT:
        return None
    return value


def money(value: object) -> float | None:
    """A sum of money, or None when it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _MAX_MONEY else None


def detail(raw: Mapping[str, Any], group: str, key: str) -> int | None:
    """A count inside a nested object."""
    inner = raw.get(group)
    return count(inner.get(key)) if isinstance(inner, dict) else None


def merge_totals(old: dict[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Join two reports of one call.

    They are running totals: a later one replaces an earlier one and is never added to it. A
    total does not fall, so where a later report has a smaller number it merely knows less.
    """
    if not old:
        return dict(new)
    merged = dict(old)
    for key, value in new.items():
        known = merged.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            merged[key] = merge_totals(known, value)
        elif value is None or (_is_number(value) and _is_number(known) and value < known):
            merged.setdefault(key, value)
        else:
            merged[key] = value
    return merged


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
