"""Durations as people write them: 90, 90s, 15m, 2h, 7d."""

from __future__ import annotations

import re

from runs.refusal import Refusal

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST_S = 7 * 86400


def seconds(text: str, *, what: str, longest_s: int = LONGEST_S) -> int:
    """Parse a duration.

    Args:
        text: digits and at most one of s, m, h, d.
        what: the flag or key it came from, for the message.
        longest_s: the most it may be, in whole days.

    Raises:
        Refusal: it is no duration, zero, or longer than that.
    """
    found = re.fullmatch(r"([0-9]{1,9})([smhd]?)", text.strip())
    if not found:
        raise Refusal(f"{what} takes a duration such as 90, 90s, 15m, 2h or 7d, not {text!r}")
    value = int(found[1]) * _UNITS[found[2]]
    if not 0 < value <= longest_s:
        raise Refusal(f"{what} must be more than zero and at most {longest_s // 86400}d")
    return value


def spoken(value: float) -> str:
    """`value` seconds in the largest units that say it: 1h 05m, 3m 20s, 4.2 s."""
    if value < 10:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m {rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m" if hours < 48 else f"{hours // 24}d {hours % 24:02d}h"
