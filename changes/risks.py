"""What to look at first in a change: typed flags, and what could not be looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Flag:
    """One thing to look at. It holds no value of a secret."""

    category: str
    severity: Severity
    path: bytes
    line: int
    reason: str
    needs_second_person: bool = False


@dataclass(frozen=True, slots=True)
class Findings:
    """Clear is: no flag, and nothing that could not be checked."""

    flags: tuple[Flag, ...]
    could_not_check: tuple[str, ...]
    lines_scanned: int
