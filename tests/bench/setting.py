"""What every part of the bench is given: where it reports, how much it may take, what is there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.bench.report import Report


@dataclass(frozen=True)
class Effort:
    """How much is measured: the more, the less the neighbours matter."""

    rounds: int = 7
    run_rounds: int = 9  # of whole runs in containers
    calls: int = 300  # one after the other, in a round
    seconds: float = 1.0  # the most that one visit takes, where more calls mean no more
    events: int = 250
    levels: tuple[int, ...] = (1, 16, 64)  # connections
    streams: tuple[int, ...] = (1, 64, 500)
    open_streams: int = 500
    body_sizes: tuple[int, ...] = (200_000, 5_000_000)
    wakeups: int = 1000  # on an engine in the bench's own process
    real_wakeups: int = 50
    runs: int = 100_000  # under the pages of the site


QUICK = Effort(
    rounds=2, run_rounds=2, calls=80, seconds=0.4, events=80, wakeups=20, real_wakeups=3, runs=2000
)


@dataclass(frozen=True)
class Setting:
    """Args:
    root: a directory that is removed in the end.
    with_first: whether the first program may be installed to be measured.
    """

    report: Report
    root: Path
    effort: Effort = Effort()
    with_first: bool = True
