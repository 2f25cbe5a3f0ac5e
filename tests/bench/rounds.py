"""Interleaved rounds: every subject is visited once a round, so a busy moment hits them all."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

Subject = Callable[[], None]


def measure(subjects: Mapping[str, Subject], rounds: int) -> dict[str, float]:
    """Median seconds of each subject over `rounds` rounds, order rotated; one visit warms up."""
    names = list(subjects)
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds + 1):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            began = time.perf_counter()
            subjects[name]()
            if turn:
                times[name].append(time.perf_counter() - began)
    return {name: statistics.median(each) for name, each in times.items()}


def verdict(figure: float, target: float) -> str:
    return "ok" if figure <= target else "MISSED"


def show(what: str, figure: float, target: float) -> None:
    print(f"  {what:<64} {figure:6.2f}  (at most {target:.2f})  {verdict(figure, target)}")
