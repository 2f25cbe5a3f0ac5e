"""What to look at first in a change: typed flags, and what could not be looked at."""

from __future__ import annotations

from changes.flag import Findings, Flag

__all__ = ["Findings", "Flag"]
