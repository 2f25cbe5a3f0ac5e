"""`Flag`: one thing to look at first in a change, and `Findings`: all of them, and what is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["high", "medium", "low"]
GRAVEST: tuple[Severity, ...] = ("high", "medium", "low")


@dataclass(frozen=True, slots=True)
class Flag:
    """One thing to look at. It holds no value of a secret.

    Args:
        path: in the result, or where it was; b"" for the whole change.
        line: in the result, counted from 1; 0 for the file as a whole.
        needs_second_person: who asked for the change cannot let it pass alone.
        commit: which of a series shows it, whose lines are meant then; 0 for the whole change.
    """

    category: str
    severity: Severity
    path: bytes
    line: int
    reason: str
    needs_second_person: bool = False
    commit: int = 0


@dataclass(frozen=True, slots=True)
class Findings:
    """What was seen. `clear` needs both: no flag, and nothing that could not be checked."""

    flags: tuple[Flag, ...]
    could_not_check: tuple[str, ...]
    lines_scanned: int

    @property
    def answer(self) -> Literal["clear", "flagged", "could not check"]:
        if self.flags:
            return "flagged"
        return "could not check" if self.could_not_check else "clear"
