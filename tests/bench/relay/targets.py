"""What the figures of the relay shall be: absolute where a person would feel it, else beside nginx.

Each target reads medians of one run, in which every subject was visited in every round. A target
that needs a subject which is not there is not judged.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.bench.relay.subjects import DIRECT, NGINX, RELAY
from tests.bench.report import Report
from tests.bench.rounds import Figures

FIRST_BYTE = "first byte p50, ms"
FIRST_BYTE_P99 = "first byte p99, ms"
EVENT_AGE = "age of an event p50, ms"
EVENT_AGE_P99 = "age of an event p99, ms"
TIMES = (FIRST_BYTE, FIRST_BYTE_P99, EVENT_AGE, EVENT_AGE_P99)
CPU = "CPU s of 1,000 calls"
MB = 1_000_000


def calls_at(connections: int) -> str:
    return f"calls/s, {connections} connection{'s' * (connections > 1)}"


def events_at(streams: int) -> str:
    return f"events/s, {streams} stream{'s' * (streams > 1)}"


def served(streams: int) -> str:
    return f"streams of {streams} that had an event"


def growth(streams: int) -> str:
    return f"{streams} open streams, MB above idle"


def body_of(size: int) -> str:
    return (
        f"{size / MB:g} MB request, p50 ms" if size >= MB else f"{size // 1000} KB request, p50 ms"
    )


@dataclass(frozen=True)
class Target:
    """A limit for one figure of ours.

    Attributes:
        beside: the limit is this many times the figure of that subject; None: it is absolute.
        less_direct: what a direct call takes is subtracted first, from ours and the other's.
    """

    label: str
    figure: str
    limit: float
    beside: str | None = None
    less_direct: bool = False
    at_least: bool = False


SMALL_CALLS = (
    Target("added to the first byte, p50, ms", FIRST_BYTE, 0.35, less_direct=True),
    Target("... / what nginx adds", FIRST_BYTE, 4, beside=NGINX, less_direct=True),
    Target("calls/s at 16 connections / nginx", calls_at(16), 0.3, beside=NGINX, at_least=True),
    Target("CPU of a call / nginx", f"{CPU}, 16", 5, beside=NGINX),
)
STREAMS = (
    Target("added to an event, p50, ms", EVENT_AGE, 0.15, less_direct=True),
    Target("added to an event, p99, ms", EVENT_AGE_P99, 1, less_direct=True),
    Target("events/s over 64 streams / nginx", events_at(64), 0.8, beside=NGINX, at_least=True),
)
BODIES = (Target("5 MB request / nginx", body_of(5 * MB), 3, beside=NGINX),)
TLS = (Target("first byte over TLS, p50, ms", FIRST_BYTE, 0.7),)
DISTANCE = (Target("added at a round trip of 30 ms, p50, ms", FIRST_BYTE, 3, less_direct=True),)
START = "one more relay in a warm process, ms"
MEMORY = (
    Target(served(500), served(500), 500, at_least=True),
    Target(growth(500), growth(500), 25),
)
STARTS = (Target(START, START, 10),)


def judge(targets: tuple[Target, ...], figures: Figures, report: Report) -> None:
    """Print how our figures compare with what is wanted."""
    for target in targets:
        values = figures.get(target.figure, {})
        direct = values.get(DIRECT, 0.0) if target.less_direct else 0.0
        needed = {RELAY} | ({target.beside} if target.beside else set())
        if not needed <= values.keys() or (target.less_direct and DIRECT not in values):
            report.note(f"not judged: {target.label}")
            continue
        value = values[RELAY] - direct
        if target.beside:
            value /= max(values[target.beside] - direct, 1e-9)
        report.target(target.label, value, target.limit, at_least=target.at_least)
