"""Numbers as people type them after a flag: what is wrong is said with what was typed."""

from __future__ import annotations

import argparse

from relay.flags import whole

__all__ = ["cores", "dollars", "whole"]


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
