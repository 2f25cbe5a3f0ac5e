"""What is measured, each in a process of its own: direct, nginx, the relay, the first program."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.relay.load import TOKEN, Address

ROOT = Path(__file__).resolve().parents[3]
DIRECT, NGINX, RELAY, FIRST = NAMES = ("direct", "nginx", "relay", "first 0.3.1")
_STARTS_WITHIN_S = 30.0
_NGINX = """
daemon off; master_process off; pid {directory}/nginx.pid; error_log {directory}/error.log;
worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path {directory}; proxy_temp_path {directory};
  fastcgi_temp_path {directory}; uwsgi_temp_path {directory}; scgi_temp_path {directory};
  client_max_body_size 64m; keepalive_requests 1000000;
  upstream model {{ server 127.0.0.1:{upstream}; keepalive 600; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    location = /v1/chat/completions {{
      if ($http_authorization != "Bearer {token}") {{ return 401; }}
      proxy_pass {scheme}://model; proxy_http_version 1.1; {tls}
      proxy_set_header Connection ""; proxy_set_header Authorization "Bearer key";
      proxy_buffering off; proxy_request_buffering off;
    }}
  }}
}}
"""
_NGINX_TLS = (
    "proxy_ssl_name localhost; proxy_ssl_server_name on; proxy_ssl_verify on; "
    "proxy_ssl_trusted_certificate {certificate}/cert.pem;"
)
# Only what the first program gives to whoever imports it, with what its own command would pass.
_FIRST = """
import dataclasses, json, os, sys, threading, time
from sanduk import start_proxy
from sanduk.providers import get_provider, parse_upstream
def start():
    scheme, host = parse_upstream(sys.argv[1])
    provider = dataclasses.replace(get_provider("openai-compat"), scheme=scheme, host=host)
    return start_proxy("key", os.environ["BENCH_TOKEN"], "127.0.0.1", upstream=host,
        provider=provider, max_tokens_cap=4096)
if len(sys.argv) > 2:
    starts, ends = [], []
    for _ in range(int(sys.argv[2])):
        began = time.perf_counter()
        server, _ = start()
        starts.append(time.perf_counter() - began)
        leaving = time.perf_counter()
        server.shutdown()
        server.server_close()
        ends.append(time.perf_counter() - leaving)
    print(json.dumps({"start": starts, "end": ends}))
else:
    print(json.dumps({"port": start()[1]}), flush=True)
    threading.Event().wait()
"""


Process = Callable[[], contextlib.AbstractContextManager[object]]


@dataclass(frozen=True)
class Subject:
    name: str
    address: Address
    pid: int


@dataclass(frozen=True)
class Origin:
    """Where the subjects send their calls."""

    port: int
    certificate: Path | None = None  # of TLS

    @property
    def url(self) -> str:
        # The certificate is for the name.
        scheme, host = ("https", "localhost") if self.certificate else ("http", "127.0.0.1")
        return f"{scheme}://{host}:{self.port}"


@dataclass(frozen=True)
class Stand:
    """The means to start subjects.

    Args:
        first_python: the interpreter that can import the first program; None: it is left out.
    """

    first_python: Path | None

    @contextlib.contextmanager
    def provider(self, certificate: Path | None = None) -> Iterator[tuple[dict[str, int], int]]:
        """The fake provider: its ports by scheme, and its process."""
        command = [sys.executable, "-m", "tests.bench.relay.upstream"]
        if certificate is not None:
            command += ["--certificate", str(certificate)]
        with started(command, environment()) as (child, said):
            yield said, child.pid

    @contextlib.contextmanager
    def distant(self, origin: Origin, round_trip_ms: float) -> Iterator[Origin]:
        """The same provider, further away."""
        command = [sys.executable, "-m", "tests.bench.relay.distance", "--to", str(origin.port)]
        command += ["--round-trip-ms", str(round_trip_ms)]
        with started(command, environment()) as (_, said):
            yield Origin(said["port"], origin.certificate)

    @contextlib.contextmanager
    def subjects(self, origin: Origin, provider_pid: int) -> Iterator[dict[str, Subject]]:
        """Every subject that there is here, in front of one provider."""
        address = Address(origin.port, origin.certificate and str(origin.certificate / "cert.pem"))
        standing = {DIRECT: Subject(DIRECT, address, provider_pid)}
        with contextlib.ExitStack() as stack:
            if program := nginx_program():
                child, port = stack.enter_context(nginx(program, origin))
                standing[NGINX] = Subject(NGINX, Address(port), child.pid)
            for name, command in self.relays(origin).items():
                child, said = stack.enter_context(started(command, environment(origin)))
                standing[name] = Subject(name, Address(said["port"]), child.pid)
            yield standing

    def relays(self, origin: Origin) -> dict[str, list[str]]:
        """The commands that start our relay and the first program's; more words time starts."""
        module = "tests.bench.relay.served"
        commands = {RELAY: [sys.executable, "-m", module, "--upstream", origin.url]}
        if self.first_python is not None:
            commands[FIRST] = [str(self.first_python), "-c", _FIRST, origin.url]
        return commands

    def processes(self, origin: Origin) -> dict[str, Process]:
        """Each relay as a process of its own; entering its block takes until it listens."""
        by_hand = [
            sys.executable, "-m", "relay", "--provider", "openai-compat", "--skip-key-check",
            "--upstream", origin.url, "--listen", "127.0.0.1:0", "--token-env", "BENCH_TOKEN",
        ]  # fmt: skip
        env = environment(origin)
        processes: dict[str, Process] = {RELAY: lambda: started(by_hand, env)}
        if program := nginx_program():
            processes[NGINX] = lambda: nginx(program, origin)
        if self.first_python is not None:
            first = self.relays(origin)[FIRST]
            processes[FIRST] = lambda: started(first, env)
        return processes

    def timed_starts(self, origin: Origin, count: int) -> dict[str, dict[str, list[float]]]:
        """Seconds to start, and to end, one more relay in a process that has started some."""
        commands = self.relays(origin)
        commands[RELAY] += ["--time-starts", str(count)]
        if FIRST in commands:
            commands[FIRST] += [str(count)]
        times = {}
        for name, command in commands.items():
            done = subprocess.run(
                command, env=environment(origin), cwd=ROOT, check=True, timeout=60,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            times[name] = json.loads(done.stdout)
        return times


def environment(origin: Origin | None = None) -> dict[str, str]:
    """This process's own, without proxies, and with the authority of the origin trusted."""
    own = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    own["BENCH_TOKEN"] = TOKEN
    if origin is not None and origin.certificate is not None:
        own["SSL_CERT_FILE"] = str(origin.certificate / "cert.pem")
    return own


@contextlib.contextmanager
def started(
    command: list[str], env: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    """A server in a process of its own, and the line of JSON that it says first."""
    child = subprocess.Popen(
        command, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with ending(child):
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line:
            raise RuntimeError(f"it did not start: {' '.join(command[:4])}")
        yield child, json.loads(line)


@contextlib.contextmanager
def ending(child: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        child.kill()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


def nginx_program() -> str | None:
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


@contextlib.contextmanager
def nginx(program: str, origin: Origin) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """One worker of nginx that streams both ways, keeps connections and checks the token."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="sanduk-bench-") as directory:
        tls = _NGINX_TLS.format(certificate=origin.certificate) if origin.certificate else ""
        configuration = Path(directory, "nginx.conf")
        configuration.write_text(
            _NGINX.format(
                directory=directory, port=port, upstream=origin.port, token=TOKEN,
                scheme="https" if origin.certificate else "http", tls=tls,
            )
        )  # fmt: skip
        Path(directory).chmod(0o755)
        child = subprocess.Popen([program, "-c", str(configuration)], stderr=subprocess.DEVNULL)
        with ending(child):
            wait_for(port)
            yield child, port


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def wait_for(port: int) -> None:
    """Return as soon as somebody accepts connections there."""
    deadline = time.monotonic() + _STARTS_WITHIN_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.001)
        else:
            return
