"""Several changes of one repository at once: so many at a time, and one budget for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from changes.asking import Options
from changes.models import Batch, Change
from runs.console import Console
from runs.verdicts import Person


def ask_all(
    path: str,
    tasks: Sequence[str],
    *,
    options: Options,
    person: Person,
    max_parallel: int = 2,
    total_budget_usd: float | None = None,
) -> Batch:
    """Write every task down as a queued change, or none of them. Raises Refusal as `ask` does."""
    raise NotImplementedError


def changes_of(batch: Batch) -> list[Change]:
    """In the order they were asked for."""
    raise NotImplementedError


def run(
    batch: Batch, tell: Console | None = None, on_end: Callable[[Change], None] | None = None
) -> list[Change]:
    """Make all of them from this process, each in one of its own; back when the last has ended.

    Ctrl-C (or SIGTERM, SIGHUP) ends those under way and drops those that wait.
    """
    raise NotImplementedError


def cancel(batch: Batch, by: str) -> None:
    """End what is under way, drop what waits."""
    raise NotImplementedError
