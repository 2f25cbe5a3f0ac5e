"""Removing what nobody needs any more: clones of dead processes, what decided changes kept."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Collected:
    """What goes, or would go: directories and refs as sentences with their sizes; troubles are what
    could not be looked at, where nothing was touched then.
    """

    gone: list[str] = field(default_factory=list)
    bytes: int = 0
    troubles: list[str] = field(default_factory=list)


def collect(*, dry_run: bool = False) -> Collected:
    """`sanduk change gc`."""
    raise NotImplementedError
