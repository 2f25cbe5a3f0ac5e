"""The parts of the bench of the relay: what each measures, and the order of its visits."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.bench import first_program
from tests.bench.relay import load, targets
from tests.bench.relay.load import Client
from tests.bench.relay.subjects import (
    DIRECT,
    FIRST,
    NAMES,
    NGINX,
    RELAY,
    Origin,
    Process,
    Stand,
    Subject,
    nginx_program,
)
from tests.bench.relay.targets import Target
from tests.bench.report import Row
from tests.bench.rounds import Figures, percentile, sampled
from tests.bench.setting import Effort, Setting
from tests.relay.certificates import make_certificate

ROUND_TRIP_MS = 30.0
Sample = Callable[[Subject], Mapping[str, float]]


def measure_calls(setting: Setting) -> None:
    """Added time to the first byte, calls a second, CPU of a call."""
    effort = setting.effort
    stand = _begin(setting, "small calls over plain http on loopback")

    with _subjects(stand) as subjects, Client() as client:

        def sample(subject: Subject) -> dict[str, float]:
            return _first_bytes(client, subject, effort) | _rates(client, subject, effort)

        _run(setting, subjects, sample, targets.SMALL_CALLS)


def measure_streams(setting: Setting) -> None:
    """Added time to an event of one paced stream, and events a second over many."""
    effort = setting.effort
    stand = _begin(setting, "streams")

    with _subjects(stand) as subjects, Client() as client:

        def sample(subject: Subject) -> dict[str, float]:
            ages = client.run(load.event_ages, subject.address, effort.events)
            figures = {
                targets.EVENT_AGE: statistics.median(ages) * 1000,
                targets.EVENT_AGE_P99: percentile(ages, 0.99) * 1000,
            }
            for streams in effort.streams:
                arguments = (subject.address, streams, effort.seconds, subject.pid)
                rate = client.run(load.event_rate, *arguments)
                figures[targets.events_at(streams)] = rate.per_second
                figures[f"CPU µs of an event, {streams}"] = rate.cpu_each_s * 1e6
                figures[f"streams of {streams} that ended well"] = rate.served
            return figures

        _run(setting, subjects, sample, targets.STREAMS)


def measure_bodies(setting: Setting) -> None:
    """Large request bodies on one connection."""
    effort = setting.effort
    stand = _begin(setting, "large request bodies")

    with _subjects(stand) as subjects, Client() as client:

        def sample(subject: Subject) -> dict[str, float]:
            figures = {}
            for size in effort.body_sizes:
                times, cpu = client.run(
                    load.whole_bodies, subject.address, size, 50, effort.seconds, subject.pid
                )
                label = targets.body_of(size)
                figures[label] = statistics.median(times) * 1000
                figures[label.replace("p50", "CPU")] = cpu * 1000
            return figures

        _run(setting, subjects, sample, targets.BODIES)


def measure_tls(setting: Setting) -> None:
    """The provider behind TLS, on loopback."""
    effort = setting.effort
    stand = _begin(setting, "provider over TLS, on loopback")
    certificate = _certificate(setting.root)

    with _subjects(stand, certificate) as subjects, Client() as client:

        def sample(subject: Subject) -> dict[str, float]:
            figures = _first_bytes(client, subject, effort)
            if subject.name != DIRECT:  # the client's side of a rate is plain http
                figures |= _rates(client, subject, effort)
            return figures

        _run(setting, subjects, sample, targets.TLS)


def measure_distance(setting: Setting) -> None:
    """The provider behind TLS, a round trip away."""
    effort = setting.effort
    stand = _begin(setting, f"provider over TLS, at a round trip of {ROUND_TRIP_MS:g} ms")
    certificate = _certificate(setting.root)

    with _subjects(stand, certificate, ROUND_TRIP_MS) as subjects, Client() as client:

        def sample(subject: Subject) -> dict[str, float]:
            return _first_bytes(client, subject, effort)

        _run(setting, subjects, sample, targets.DISTANCE)


def measure_memory(setting: Setting) -> None:
    """Resident memory of fresh processes, idle and with many open streams."""
    count = setting.effort.open_streams
    stand = _begin(setting, "memory")
    found: list[Figures] = []
    for _ in range(min(3, setting.effort.rounds)):
        with _subjects(stand) as subjects, Client() as client:

            def sample(subject: Subject, client: Client = client) -> dict[str, float]:
                # one call first: what a first call loads is no cost of many
                client.run(load.first_bytes, subject.address, 1, 1.0)
                held = client.run(load.hold_streams, subject.address, count, subject.pid)
                return {
                    "idle, MB": held.before_mb,
                    f"with {count} open streams, MB": held.during_mb,
                    targets.growth(count): held.during_mb - held.before_mb,
                    targets.served(count): held.served,
                }

            found.append(sampled(subjects, 1, sample, setting.report.note))
    _tell(setting, _medians(found), targets.MEMORY)


def measure_start(setting: Setting) -> None:
    """One more relay in a warm process, and a relay as a process of its own."""
    rounds = setting.effort.rounds
    stand = _begin(setting, "start")
    with stand.provider() as (ports, _):
        origin = Origin(ports["http"])
        figures: Figures = {targets.START: {}, "... and its end, ms": {}}
        for name, times in stand.timed_starts(origin, max(3, rounds)).items():
            figures[targets.START][name] = statistics.median(times["start"]) * 1000
            figures["... and its end, ms"][name] = statistics.median(times["end"]) * 1000
        taken: Figures = sampled(
            stand.processes(origin), rounds, _until_it_listens, setting.report.note
        )
        figures |= taken
    _tell(setting, figures, targets.STARTS)


def _until_it_listens(process: Process) -> dict[str, float]:
    began = time.perf_counter()
    with process():
        return {"a process until it listens, ms": (time.perf_counter() - began) * 1000}


# -- samples ---------------------------------------------------------------------------------------
def _first_bytes(client: Client, subject: Subject, effort: Effort) -> dict[str, float]:
    times = client.run(load.first_bytes, subject.address, effort.calls, effort.seconds)
    return {
        targets.FIRST_BYTE: statistics.median(times) * 1000,
        targets.FIRST_BYTE_P99: percentile(times, 0.99) * 1000,
    }


def _rates(client: Client, subject: Subject, effort: Effort) -> dict[str, float]:
    figures = {}
    for connections in effort.levels:
        arguments = (subject.address, connections, effort.seconds, subject.pid)
        rate = client.run(load.call_rate, *arguments)
        figures[targets.calls_at(connections)] = rate.per_second
        figures[f"{targets.CPU}, {connections}"] = rate.cpu_each_s * 1000
        if connections > 1:
            figures[f"connections of {connections} that were served"] = rate.served
    return figures


# -- the frame of each part ------------------------------------------------------------------------
def _begin(setting: Setting, title: str) -> Stand:
    setting.report.section(f"relay: {title}")
    python, why = None, "it was not asked for"
    if setting.with_first:
        python, why = first_program.install(setting.root)
    if python is None:
        setting.report.note(f"{FIRST} is left out: {why}")
    if nginx_program() is None:
        setting.report.note(f"{NGINX} is left out: it is not installed (package nginx-light)")
    return Stand(python)


@contextlib.contextmanager
def _subjects(
    stand: Stand, certificate: Path | None = None, round_trip_ms: float = 0.0
) -> Iterator[dict[str, Subject]]:
    with contextlib.ExitStack() as stack:
        ports, pid = stack.enter_context(stand.provider(certificate))
        origin = Origin(ports["https" if certificate else "http"], certificate)
        if round_trip_ms:
            origin = stack.enter_context(stand.distant(origin, round_trip_ms))
        yield stack.enter_context(stand.subjects(origin, pid))


def _certificate(root: Path) -> Path:
    directory = root / "certificate"
    if not directory.exists():
        directory.mkdir()
        make_certificate(directory, "localhost")
    return directory


def _run(
    setting: Setting, subjects: dict[str, Subject], sample: Sample, judged: tuple[Target, ...]
) -> None:
    _tell(setting, sampled(subjects, setting.effort.rounds, sample, setting.report.note), judged)


def _tell(setting: Setting, figures: Figures, judged: tuple[Target, ...]) -> None:
    there = {name for values in figures.values() for name in values}
    rows = list(figures.items())
    if any(target.less_direct for target in judged):
        rows += _added(figures)
    setting.report.table([name for name in NAMES if name in there], RELAY, rows)
    targets.judge(judged, figures, setting.report)


def _added(figures: Figures) -> list[Row]:
    """What each adds to a direct call: the figures of time, less the direct one."""
    return [
        (f"{figure.removesuffix(', ms')}, added, ms", {
            name: value - values[DIRECT] for name, value in values.items() if name != DIRECT
        })
        for figure, values in figures.items()
        if figure in targets.TIMES and DIRECT in values
    ]  # fmt: skip


def _medians(found: list[Figures]) -> Figures:
    return {
        figure: {
            name: statistics.median(one[figure][name] for one in found if name in one[figure])
            for name in values
        }
        for figure, values in found[0].items()
    }
