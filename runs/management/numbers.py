"""Numbers as people type them after a flag: what is wrong is said with what was typed."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def whole(low: int = 1, high: int = 10**15) -> Callable[[str], int]:
    """A reader of whole numbers from `low` to `high`, digits only.

    It raises argparse.ArgumentTypeError, which argparse puts behind the flag's name.
    """

    def read(text: str) -> int:
        plain = text.strip()
        value = int(plain) if plain.isascii() and plain.isdigit() and len(plain) < 20 else -1
        if not low <= value <= high:
            most = f" to {high}" if high < 10**15 else ""
            raise argparse.ArgumentTypeError(
                f"it takes a whole number from {low}{most}, in digits, not {text!r}"
            )
        return value

    return read


def dollars(text: str) -> float:
    """US dollars above 0. Raises argparse.ArgumentTypeError."""
    value = _number(text)
    if value is None or not 0 < value < 10**9:
        raise argparse.ArgumentTypeError(
            f"it takes US dollars above 0, as 2 or 0.50, without a sign, not {text!r}"
        )
    return value


def cores(text: str) -> float:
    """Processors of a container. Raises argparse.ArgumentTypeError."""
    value = _number(text)
    if value is None or not 0.01 <= value <= 1024:
        raise argparse.ArgumentTypeError(f"it takes a number from 0.01 to 1024, not {text!r}")
    return value


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
