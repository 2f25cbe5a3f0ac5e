"""Interleaved rounds: every subject is visited once a round, so a busy moment hits them all."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TypeVar

Visit = Callable[[], None]
Figures = dict[str, dict[str, float]]  # a figure's name, then the subject's
T = TypeVar("T")


def measure(subjects: Mapping[str, Visit], rounds: int) -> dict[str, float]:
    """Median seconds of each subject over `rounds` rounds, order rotated; one visit warms up."""
    times: dict[str, list[float]] = defaultdict(list)
    for turn, name in rotated(list(subjects), rounds + 1):
        began = time.perf_counter()
        subjects[name]()
        if turn:
            times[name].append(time.perf_counter() - began)
    return {name: statistics.median(each) for name, each in times.items()}


def sampled(
    subjects: Mapping[str, T],
    rounds: int,
    sample: Callable[[T], Mapping[str, float]],
    on_failure: Callable[[str], None],
) -> Figures:
    """Medians of several figures over interleaved rounds.

    Args:
        sample: measures one subject once.
        on_failure: told of a subject that could not be measured; it is not asked again.
    """
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    failed: set[str] = set()
    for _, name in rotated(list(subjects), rounds):
        if name in failed:
            continue
        try:
            figures = sample(subjects[name])
        except (OSError, TimeoutError) as error:
            failed.add(name)
            on_failure(f"{name} could not be measured: {error!r}")
            continue
        for figure, value in figures.items():
            found[figure][name].append(value)
    return {
        figure: {name: statistics.median(values) for name, values in by_name.items()}
        for figure, by_name in found.items()
    }


def rotated(names: list[str], rounds: int) -> list[tuple[int, str]]:
    """All visits in order: the number of the round, and who is visited."""
    return [
        (turn, name)
        for turn in range(rounds)
        for name in names[turn % len(names) :] + names[: turn % len(names)]
    ]


def percentile(values: list[float], fraction: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * fraction))]
