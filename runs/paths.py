"""Paths as people type them."""

from __future__ import annotations

from pathlib import Path

from runs.refusal import Refusal


def expanded(text: str, *, what: str) -> Path:
    """`text` with a leading `~` or `~name` replaced. Raises Refusal when there is no such home.

    Args:
        what: the flag it came from, for the message.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise Refusal(f"{what} {text}: there is no such home directory") from None
