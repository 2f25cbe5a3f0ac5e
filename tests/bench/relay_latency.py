"""What the relay adds to a call: time to first byte and age of streamed events.

    python -m tests.bench.relay_latency [--rounds N] [--calls N]

A direct call, nginx and the relay are measured in one run, in interleaved rounds whose order
rotates, each in a process of its own, over http on loopback. Read the ratios: absolute figures
move with the machine and its neighbours. nginx does no parsing and no metering; it is skipped,
with the reason, where it is not installed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import uvloop

import relay

TOKEN = "bench-token"
BODY = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"' + b"x" * 4000 + b'"}]}'
PACE_S = 0.004  # 250 events a second
EVENTS = 100
TARGETS = {"added first byte, ms": (0.35, 4.0), "added per event, ms": (0.15, None)}
NGINX = """
daemon off; worker_processes 1; pid {directory}/nginx.pid; error_log {directory}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_body_temp_path {directory}; proxy_temp_path {directory};
  fastcgi_temp_path {directory}; uwsgi_temp_path {directory}; scgi_temp_path {directory};
  client_max_body_size 64m; keepalive_requests 1000000;
  upstream model {{ server 127.0.0.1:{upstream}; keepalive 64; }}
  server {{
    listen 127.0.0.1:{port};
    location = /v1/chat/completions {{
      if ($http_authorization != "Bearer bench-token") {{ return 401; }}
      proxy_pass http://model; proxy_http_version 1.1;
      proxy_set_header Connection ""; proxy_set_header Authorization "Bearer key";
      proxy_buffering off; proxy_request_buffering off;
    }}
  }}
}}
"""


class Model(asyncio.Protocol):
    """A provider that costs next to nothing: one event at once, or EVENTS paced and stamped."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data
        head, separator, body = self.data.partition(b"\r\n\r\n")
        if not separator or len(body) < len(BODY):
            return
        self.data = b""
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )
        if b"x-paced" in head.lower():
            asyncio.get_running_loop().call_later(PACE_S, self.send_event, EVENTS)
        else:
            self.transport.write(event(0) + b"0\r\n\r\n")

    def send_event(self, left: int) -> None:
        if left == 0:
            self.transport.write(b"0\r\n\r\n")
            return
        self.transport.write(event(time.monotonic_ns()))
        asyncio.get_running_loop().call_later(PACE_S, self.send_event, left - 1)


def event(stamp: int) -> bytes:
    data = b'data: {"at":@%020d@,"choices":[{"delta":{"content":"word"}}]}\n\n' % stamp
    return b"%x\r\n%b\r\n" % (len(data), data)


def run_model(ready: Connection) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Model, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await asyncio.Event().wait()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def run_relay(ready: Connection, upstream: int) -> None:
    async def main() -> None:
        provider = relay.get_provider("openai-compat")
        policy = relay.Policy(provider, relay.Endpoint("http", "127.0.0.1", upstream))
        app = relay.create_app(policy, relay.Credential("key"), TOKEN, relay.Ledger())
        bound = socket.create_server(("127.0.0.1", 0))
        async with relay.serving(app, bound):
            ready.send(bound.getsockname()[1])
            await asyncio.Event().wait()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


@contextlib.contextmanager
def process(target: Callable[..., None], *args: object) -> Iterator[int]:
    """Run a server in a process of its own; gives its port."""
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("spawn").Process(target=target, args=(theirs, *args))
    child.start()
    try:
        if not ours.poll(20):
            raise TimeoutError(f"{target.__name__} did not start")
        yield ours.recv()
    finally:
        child.kill()
        child.join()


@contextlib.contextmanager
def nginx(upstream: int) -> Iterator[int | None]:
    """nginx as a streaming proxy in front of the model; None where it is not installed."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        yield None
        return
    with socket.socket() as free, tempfile.TemporaryDirectory() as directory:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        configuration = Path(directory) / "nginx.conf"
        configuration.write_text(NGINX.format(directory=directory, upstream=upstream, port=port))
        Path(directory).chmod(0o755)
        server = subprocess.Popen([program, "-c", str(configuration)])
        try:
            wait_for(port)
            yield port
        finally:
            server.terminate()
            server.wait()


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


class Client:
    """One keep-alive connection, blocking, as cheap as Python allows."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, *headers: str) -> None:
        lines = [
            "POST /v1/chat/completions HTTP/1.1",
            "host: bench",
            f"authorization: Bearer {TOKEN}",
            "content-type: application/json",
            f"content-length: {len(BODY)}",
            *headers,
        ]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode() + BODY)

    def first_byte(self) -> float:
        """Seconds from sending a request to the first byte of its event."""
        started = time.perf_counter()
        self.send()
        answer = b""
        at = 0.0
        while not answer.endswith(b"0\r\n\r\n"):
            piece = self.socket.recv(65536)
            if not piece:
                raise ConnectionError("the connection ended early")
            answer += piece
            if not at and b"data:" in answer:
                at = time.perf_counter() - started
        if not answer.startswith(b"HTTP/1.1 200"):
            raise ConnectionError(answer[:80].decode("latin-1"))
        return at

    def event_ages(self) -> list[float]:
        """Seconds each event of one paced stream took to arrive."""
        self.send("x-paced: 1")
        ages: list[float] = []
        rest = b""
        while not rest.endswith(b"0\r\n\r\n"):
            rest += self.socket.recv(65536)
            now = time.monotonic_ns()
            *whole, rest = rest.split(b"\n\n")
            for one in whole:
                ages.append((now - int(one.split(b"@")[1])) / 1e9)
        return ages


def measure(ports: dict[str, int], rounds: int, calls: int) -> dict[str, dict[str, list[float]]]:
    clients = {name: Client(port) for name, port in ports.items()}
    found: dict[str, dict[str, list[float]]] = {name: {"first": [], "ages": []} for name in ports}
    for client in clients.values():
        for _ in range(50):
            client.first_byte()
    names = list(ports)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            client = clients[name]
            found[name]["first"] += [client.first_byte() for _ in range(calls)]
            found[name]["ages"] += client.event_ages()
    return found


def percentile(values: list[float], fraction: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * fraction))]


def report(found: dict[str, dict[str, list[float]]]) -> None:
    titles = ("first byte p50", "p99", "added", "event p50", "p99", "added")
    widths = (16, 9, 9, 12, 9, 9)
    print(" " * 10 + "".join(f"{t:>{w}}" for t, w in zip(titles, widths, strict=True)))
    rows = {}
    for name, kinds in found.items():
        row = [
            value * 1000
            for kind in ("first", "ages")
            for value in (statistics.median(kinds[kind]), percentile(kinds[kind], 0.99))
        ]
        rows[name] = row
        first, age = row[0] - rows["direct"][0], row[2] - rows["direct"][2]
        print(
            f"{name:10}{row[0]:16.3f}{row[1]:9.3f}{first:9.3f}{row[2]:12.3f}{row[3]:9.3f}{age:9.3f}"
        )
    direct, ours = rows["direct"], rows["relay"]
    added = {
        "added first byte, ms": (0, ours[0] - direct[0]),
        "added per event, ms": (2, ours[2] - direct[2]),
    }
    for label, (column, value) in added.items():
        most, times = TARGETS[label]
        line = f"{label}: {value:.3f} (target {most})"
        if "nginx" in rows:
            ratio = value / max(rows["nginx"][column] - direct[column], 0.001)
            line += f", {ratio:.1f} x nginx" + (f" (target {times})" if times else "")
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description="What the relay adds to a call.")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--calls", type=int, default=300)
    options = parser.parse_args()
    with (
        process(run_model) as model,
        process(run_relay, model) as relayed,
        nginx(model) as proxied,
    ):
        ports = {"direct": model, "relay": relayed}
        if proxied is None:
            print("nginx is skipped: it is not installed (package nginx-light)")
        else:
            ports = {"direct": model, "nginx": proxied, "relay": relayed}
        report(measure(ports, options.rounds, options.calls))


if __name__ == "__main__":
    main()
