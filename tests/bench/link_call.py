"""A keep-alive call through the link, beside the same call on the socket behind it.

`python -m tests.bench link`. The caller is the same few lines in both places: once in a
container that joined the link's network namespace, once on the host at the unix socket.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import recipes
import relay
from tests.bench.engine_side import HARDENED, LABEL, docker
from tests.bench.setting import Setting

CALLS = 3000
TARGET_MS = 0.5
PORT = 8080
# waits until somebody listens, warms up, and prints the median of a call in ms
CALLER = f"""
import socket, statistics, sys, time
def connected():
    for _ in range(200):
        try:
            if sys.argv[1].startswith("/"):
                client = socket.socket(socket.AF_UNIX)
                client.connect(sys.argv[1])
            else:
                client = socket.create_connection(("127.0.0.1", {PORT}))
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return client
        except OSError:
            time.sleep(0.05)
client = connected()
times = []
for turn in range({CALLS}):
    began = time.perf_counter()
    client.sendall(b"GET / HTTP/1.1\\r\\nHost: relay\\r\\n\\r\\n")
    answer = b""
    while not answer.endswith(b"ok"):
        answer += client.recv(65536)
    times.append(time.perf_counter() - began)
print(statistics.median(times[{CALLS // 10}:]) * 1000)
"""


async def answering(scope: dict[str, object], receive: object, send: object) -> None:
    """The least application: what is measured is the way to it."""
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})  # type: ignore[operator]
    await send({"type": "http.response.body", "body": b"ok"})  # type: ignore[operator]


def measure_link(setting: Setting) -> None:
    asyncio.run(_measure(setting))


async def _measure(setting: Setting) -> None:
    path, report = setting.root / "relay.sock", setting.report
    report.section("a keep-alive call through the link of a sealed run")
    async with relay.serving(answering, relay.bind_unix(path, mode=0o666)):  # type: ignore[arg-type]
        through = await asyncio.to_thread(_through_link, path)
        direct = await asyncio.to_thread(_called, sys.executable, "-c", CALLER, str(path))
    report.figure("p50 ms", {"through the link": through, "at the socket": direct})
    report.target("added by the link, p50 ms", through - direct, TARGET_MS)


def _through_link(path: Path) -> float:
    tag = recipes.image_tag(recipes.render(recipes.load("link")), {})
    order = (
        f'{{"socket": "/run/relay.sock", "port": {PORT}, "limit_s": 120, "host_addresses": [], '
        '"host_ports": [], "neighbours": [], "name": null}'
    )
    mount = f"type=bind,src={path},dst=/run/relay.sock"
    user = f"{os.geteuid() or 65534}:{os.getegid() or 65534}"
    link = docker(
        "run", "-d", "--network", "none", *HARDENED, "--user", user, "--mount", mount, tag, order
    )
    try:
        caller = ("run", "--rm", "--network", f"container:{link}", "--label", LABEL)
        image = ("--entrypoint", "python3", tag, "-c", CALLER, "loopback")
        return _called("docker", *caller, *image)
    finally:
        docker("rm", "--force", link)


def _called(*command: str) -> float:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)
