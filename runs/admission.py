"""Whether this host has room for one more run, before anything is started."""

from __future__ import annotations

import re
from pathlib import Path

from runs.refusal import HostRefusal, Refusal

MEMORY_MIN = 32 * 2**20  # engines take 6 MB, in which no agent of any kind starts
MEMORY_MAX = 2**50
_UNITS = {"b": 1, "k": 2**10, "m": 2**20, "g": 2**30}


def size_bytes(text: str) -> int:
    """A memory size as engines read it: 512m, 4g, plain bytes. Raises Refusal.

    So does one that is too small for anything to start: the engine would say it after the start.
    """
    found = re.fullmatch(r"([1-9][0-9]{0,12})([bkmg]?)", text.lower())
    if not found:
        raise Refusal(f"--memory takes a size such as 512m or 4g, not {text!r}")
    value = int(found[1]) * _UNITS[found[2] or "b"]
    if value < MEMORY_MIN:
        raise Refusal(f"--memory {text} is {value:,} bytes; it must be at least 32m (k, m, g)")
    if value > MEMORY_MAX:
        raise Refusal(f"--memory {text} is more than any machine has")
    return value


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
        raise HostRefusal(
            f"this host has {free / 2**30:.1f} GB of memory to give, and the run may take "
            f"{wanted / 2**30:.1f} GB; lower --memory, or wait"
        )
