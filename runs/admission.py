"""Whether this host has room for one more run, before anything is started."""

from __future__ import annotations

import re
from pathlib import Path

from runs.refusal import Refusal

_UNITS = {"b": 1, "k": 2**10, "m": 2**20, "g": 2**30}


def size_bytes(text: str) -> int:
    """A memory size as engines read it: 512m, 4g, plain bytes. Raises Refusal."""
    found = re.fullmatch(r"([1-9][0-9]{0,12})([bkmg]?)", text.lower())
    if not found:
        raise Refusal(f"--memory takes a size such as 512m or 4g, not {text!r}")
    return int(found[1]) * _UNITS[found[2] or "b"]


def available_bytes() -> int | None:
    """Memory this host could give now, from /proc/meminfo; None where it does not say."""
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return None
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def require_memory(limit: str) -> None:
    """Raise Refusal when less memory is free than the run may take.

    An agent that grows past what the host has drags everything else down with it.
    """
    wanted, free = size_bytes(limit), available_bytes()
    if free is not None and free < wanted:
        raise Refusal(
            f"this host has {free / 2**30:.1f} GB of memory to give, and the run may take "
            f"{wanted / 2**30:.1f} GB; lower --memory, or wait"
        )
