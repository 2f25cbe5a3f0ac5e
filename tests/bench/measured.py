"""What docs/measured.md tells: `python -m tests.bench measured` measures it and writes the page.

A bad key on the host and in a container, the first request of each agent, whole runs, what each
mode lets out, and keys in containers. The models are stand-ins on this machine: nothing is paid.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from relay import get_provider
from runs.agents import get_agent
from tests.bench.setting import QUICK, Setting
from tests.engine.engine_fixtures import told
from tests.engine.running import AGENTS, Installation, installed
from tests.engine.test_run_secrets import KEYS, STAY, in_container

PAGE = Path(__file__).parents[2] / "docs" / "measured.md"
MODES = ("sealed", "key-safe", "open")
BAD_KEY_AGENTS = {"pi": "openai", "codex": "openai", "claude": "anthropic"}
PATIENCE_S = 420.0
Table = tuple[Sequence[str], list[Sequence[str]]]
# each attempt of the container to leave itself; the listener is this host's, on every address
OUT = """
python3 - {port} {addresses} <<'OUT'
import json, os, socket, sys
port, *addresses = sys.argv[1:]
def reaches(address):
    try:
        socket.create_connection((address, int(port)), 2).close()
        return True
    except OSError:
        return False
found = [each for each in addresses if reaches(each)]
names = sorted(os.listdir("/sys/class/net"))
print(json.dumps({{"type": "text", "text": json.dumps({{"names": names, "host": found}})}}))
OUT
echo '{{"type": "result", "ok": true, "text": "done"}}'; exit
"""


def measure_facts(setting: Setting) -> None:
    quick = setting.effort == QUICK
    agents = AGENTS[:1] if quick else AGENTS
    setting.report.section("what docs/measured.md tells")
    with metadata_at_home() as has_metadata, installed("docker") as place:
        runs = {name: whole_run(place, name) for name in agents}
        bad = {name: bad_key(place, name) for name in ([] if quick else BAD_KEY_AGENTS)}
        modes = MODES if has_metadata else ("sealed", "open")
        leaving = {mode: ways_out(place, mode) for mode in modes}
        held = {mode: keys_held(place, mode) for mode in modes}
    for name, run in runs.items():
        setting.report.figure(f"{name}: first request, bytes; wall, s", run)
    setting.report.note(f"keys in the container, of {len(KEYS)}: {held}")
    page = PAGE if not quick else setting.root / "measured.md"
    page.write_text(page_of(runs, bad, leaving, held))
    setting.report.note(f"written to {page}")


# -- whole runs -----------------------------------------------------------------------------------


def whole_run(place: Installation, agent: str) -> dict[str, float]:
    """A sealed run on the rehearsal model. Times in seconds, sizes in bytes."""
    done = place.sanduk(
        "run", "-q", "--runtime", "docker", "--agent", agent, "--provider", "rehearsal",
        "-w", str(place.ground / f"work-{agent}"), "look around", limit_s=PATIENCE_S,
    )  # fmt: skip
    if done.code != 0:
        raise RuntimeError(f"{agent} did not end well: {done}")
    run = place.show()
    calls = [call for call in run["relay_calls"] if call["bytes_in"] and call["model_asked"]]
    upstream = sum(_seconds(call["started_at"], call["ended_at"]) for call in calls)
    return {
        "first request": calls[0]["bytes_in"],
        "first call after": run["first_call_s"],
        "wall": run["duration_s"],
        "upstream": upstream,
        "calls": len(calls),
    }


def _seconds(since: str, until: str) -> float:
    return (datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds()


# -- a bad key ------------------------------------------------------------------------------------


class _Denies(http.server.BaseHTTPRequestHandler):
    """A provider that knows no key."""

    protocol_version = "HTTP/1.1"

    def _deny(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b'{"type": "error", "error": {"type": "authentication_error", "message": "no"}}'
        self.send_response(401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_HEAD = _deny

    def log_message(self, *_: Any) -> None:
        pass


def bad_key(place: Installation, agent: str) -> dict[str, float]:
    """Seconds until a wrong key is told: by the check on the host, and by the agent itself."""
    provider = BAD_KEY_AGENTS[agent]
    key = {get_provider(provider).key_env: "sk-wrong"}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Denies)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    words = [
        "run", "-q", "--runtime", "docker", "--agent", agent, "--provider", provider,
        "--upstream", f"http://127.0.0.1:{server.server_port}", "--timeout", "6m",
        "-w", str(place.ground / f"bad-{agent}"), "look around",
    ]  # fmt: skip
    if get_agent(agent).needs_model:
        words += ["--model", "any"]
    try:
        took = []
        for flags in ([], ["--skip-key-check"]):
            began = time.perf_counter()
            done = place.sanduk(*words[:-1], *flags, words[-1], limit_s=PATIENCE_S, **key)
            took.append(time.perf_counter() - began)
            if done.code == 0:
                raise RuntimeError(f"{agent} succeeded with a wrong key: {done}")
    finally:
        server.shutdown()
        server.server_close()
    return {"on the host": took[0], "in the container": took[1]}


# -- ways out and keys ----------------------------------------------------------------------------


@contextlib.contextmanager
def metadata_at_home() -> Iterator[bool]:
    """The probe of a key-safe run tries 169.254.169.254: let that be this machine; else say no."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        yield False
        return
    words = ("169.254.169.254/32", "dev", "lo")
    added = subprocess.run(["ip", "addr", "add", *words], capture_output=True).returncode == 0
    try:
        yield True
    finally:
        if added:
            subprocess.run(["ip", "addr", "del", *words], check=True)


def ways_out(place: Installation, mode: str) -> dict[str, Any]:
    """A container's interfaces, and whether it reaches a port that listens on all of this host."""
    shown = told("hostname", "-I").stdout.split()
    addresses = [address for address in shown if re.fullmatch(r"[0-9.]+", address)]
    with socket.create_server(("0.0.0.0", 0)) as listening:  # noqa: S104 - that is the question
        script = OUT.format(port=listening.getsockname()[1], addresses=" ".join(addresses))
        done = place.run(script, "--mode", mode, "--provider", "openai", **KEYS)
    texts = [each["text"] for each in place.show()["trace"] if each["kind"] == "text"]
    if not texts:
        raise RuntimeError(f"the look around in {mode} mode gave nothing: {done}")
    found: dict[str, Any] = json.loads(texts[0])
    return found


def keys_held(place: Installation, mode: str) -> int:
    """How many of all providers' keys, all exported, a look through the container finds."""
    going = place.begin(STAY, "--mode", mode, "--provider", "openai", **KEYS)
    found = in_container(place)
    going.signal(2).end()
    return len(found)


# -- the page -------------------------------------------------------------------------------------


def page_of(
    runs: dict[str, dict[str, float]],
    bad: dict[str, dict[str, float]],
    leaving: dict[str, dict[str, Any]],
    held: dict[str, int],
) -> str:
    server = told("docker", "version", "--format", "{{.Server.Version}}").stdout.strip()
    parts = [
        "# Measured",
        "Written by `make bench ARGS=measured` "
        f"({time.strftime('%Y-%m-%d', time.gmtime())}, Python {platform.python_version()}, Docker "
        f"{server}, {os.cpu_count()} processors). The models are stand-ins on the same machine, so "
        "times are without a real model's; sizes and counts do not depend on the machine.",
        "## Keys in the container",
        f"The keys of all {len(KEYS)} providers are exported where `sanduk run` is called. The "
        "container then looks through every environment, argument and file it can read.",
        _table((("mode", "keys found"), [(m, f"{n} of {len(KEYS)}") for m, n in held.items()])),
        "## What each mode lets out",
        "A port listens on every address of the host; the container tries all of them. key-safe "
        "is a network of the run's own: it keeps other runs out of reach, not the host.",
        _table((("mode", "interfaces", "reaches the host"), [_out(*x) for x in leaving.items()])),
        "## The first request",
        "What an agent sends before it has done anything: its own prompt, its tools, and a task of "
        "two words with the report instruction. Tokens are estimated at four bytes each.",
        _table(_first(runs)),
        "## A whole run",
        "Sealed, on the rehearsal model, in seconds: from the agent's start to its end, to its "
        "first call, and all its calls together. The rest is the agent's own.",
        _table(_whole(runs)),
    ]
    if bad:
        parts += [
            "## A bad key",
            "A provider that answers 401, in seconds for the whole command: found by the check on "
            "the host, before the agent is started, and left to the agent (`--skip-key-check`), "
            "which tries again.",
            _table(_bad(bad)),
        ]
    return "\n\n".join(parts) + "\n"


def _out(mode: str, found: dict[str, Any]) -> Sequence[str]:
    return (mode, ", ".join(found["names"]), "yes" if found["host"] else "no")


def _first(runs: dict[str, dict[str, float]]) -> Table:
    rows = [
        (name, f"{run['first request']:,.0f}", f"{run['first request'] / 4:,.0f}")
        for name, run in runs.items()
    ]
    return ("agent", "bytes", "tokens, about"), rows


def _whole(runs: dict[str, dict[str, float]]) -> Table:
    names = ("wall", "first call after", "upstream")
    rows = [
        (name, *(f"{run[each]:.2f}" for each in names), f"{run['calls']:.0f}")
        for name, run in runs.items()
    ]
    return ("agent", *names, "calls"), rows


def _bad(bad: dict[str, dict[str, float]]) -> Table:
    rows = [(name, *(f"{took:.1f}" for took in times.values())) for name, times in bad.items()]
    return ("agent", "on the host", "in the container"), rows


def _table(table: Table) -> str:
    headings, rows = table
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
