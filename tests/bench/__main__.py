"""The benches, by name: `python -m tests.bench --help`."""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.bench.change_cost import measure_changes
from tests.bench.link_call import measure_link
from tests.bench.measured import measure_facts
from tests.bench.memory_cost import measure_memory_cost
from tests.bench.page_cost import measure_pages
from tests.bench.real_agents import measure_agents
from tests.bench.relay import measures
from tests.bench.report import Report
from tests.bench.run_cost import measure_run
from tests.bench.setting import QUICK, Effort, Setting
from tests.bench.tick_cost import measure_tick
from tests.bench.wakeup_throughput import measure_wakeups

PARTS: dict[str, tuple[Callable[[Setting], None], str]] = {
    "relay-calls": (measures.measure_calls, "first byte, calls a second, CPU of a call"),
    "relay-streams": (measures.measure_streams, "age of an event, events a second"),
    "relay-bodies": (measures.measure_bodies, "requests of 200 KB and 5 MB"),
    "relay-tls": (measures.measure_tls, "the provider over TLS, on loopback"),
    "relay-distance": (measures.measure_distance, "the provider a round trip of 30 ms away"),
    "relay-memory": (measures.measure_memory, "memory, idle and with 500 open streams"),
    "relay-start": (measures.measure_start, "time to start one relay"),
    "link": (measure_link, "a call through the link of a sealed run (needs an engine)"),
    "run": (measure_run, "what a sealed run costs beyond its agent (needs an engine)"),
    "measured": (measure_facts, "the figures of docs/measured.md, which it writes (engine)"),
    "memory": (measure_memory_cost, "a snapshot of 10,000 unchanged files beside reading them"),
    "changes": (measure_changes, "a change provided, read and landed beside plain git"),
    "tick": (measure_tick, "a look over 10,000 assistants of which 100 are due"),
    "pages": (measure_pages, "the site's pages over 100,000 runs beside a stock list of 100 rows"),
    "wakeups": (measure_wakeups, "1,000 wakeups in this process and 50 by a worker: none lost"),
    "agents": (measure_agents, "whole runs of real agents (needs an engine)"),
}
SETS = {"relay": [name for name in PARTS if name.startswith("relay-")]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; 0 whatever the figures are, since targets are for people to judge."""
    given = _parser().parse_args(arguments)
    if given.list:
        for name, (_, what) in PARTS.items():
            print(f"{name:<16}{what}")
        return 0
    _allow_many_files()
    report = Report()
    effort = QUICK if given.quick else Effort()
    print(f"{effort.rounds} interleaved rounds, load {os.getloadavg()[0]:.2f}: read the ratios")
    with tempfile.TemporaryDirectory(prefix="sanduk-bench-") as scratch:
        root = Path(scratch)
        root.chmod(0o755)
        setting = Setting(report, root, effort, with_first=not given.without_first)
        for name in _named(given.names):
            PARTS[name][0](setting)
    print(f"\n{report.missed} targets missed")
    if given.json:
        report.write(given.json)
    return 0


def _allow_many_files() -> None:
    """A relay of 500 streams has 1,000 connections; a normal user's soft limit is often 1024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = 65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))


def _parser() -> argparse.ArgumentParser:
    names = ", ".join((*SETS, *PARTS))
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description="Measure speed as ratios, each beside its baseline in the same run.",
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", type=_known, help=f"{names}; all unless given")
    add("--list", action="store_true", help="say what each part measures, and stop")
    add("--quick", action="store_true", help="few rounds: to see that it works, not how fast")
    add("--without-first", action="store_true", help="do not install and measure sanduk 0.3.1")
    add("--json", type=Path, metavar="FILE", help="write every figure and verdict there too")
    return parser


def _known(name: str) -> str:
    if name not in PARTS and name not in SETS:
        raise argparse.ArgumentTypeError(f"there is no part {name}; --list names them")
    return name


def _named(names: Sequence[str]) -> list[str]:
    """The parts that names mean, each once, in their own order."""
    wanted = {part for name in names or PARTS for part in SETS.get(name, [name])}
    return [part for part in PARTS if part in wanted]


if __name__ == "__main__":
    sys.exit(main())
