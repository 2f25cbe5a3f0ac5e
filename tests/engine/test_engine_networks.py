"""Networks of a run: made, found and removed by label, and closed to neighbours."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator

import pytest

from tests.engine.engine_fixtures import Bench, told

pytestmark = [
    pytest.mark.engine,
    pytest.mark.anyio,
    pytest.mark.parametrize(
        "bench", ["docker", pytest.param("podman", marks=pytest.mark.podman)], indirect=True
    ),
]
INTERNAL = {"docker": "Internal", "podman": "internal"}
SERVE = """
import socket
server = socket.create_server(("", 8000))
print(socket.gethostbyname(socket.gethostname()))
while True:
    server.accept()[0].close()
"""
REACH = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 8000), 3).close()
    print("reached")
except OSError:
    print("closed")
"""


@contextlib.asynccontextmanager
async def network(bench: Bench, name: str, *, internal: bool = False) -> AsyncIterator[str]:
    made = await bench.engine.create_network(name, bench.labels, internal=internal)
    try:
        yield made
    finally:
        for row in await bench.engine.containers(bench.labels):
            await bench.engine.remove([row.id])
        await bench.engine.remove_network(made)


async def test_a_network_is_found_by_its_label_and_removed_twice(bench: Bench):
    name = f"sanduk-test-{bench.labels['sanduk.run']}"
    async with network(bench, name, internal=True) as made:
        assert await bench.engine.networks(bench.labels) == [made]
        assert len(made) == 64
        shown = await bench.engine.call("network", "inspect", made)
        assert json.loads(shown.stdout)[0][INTERNAL[bench.engine.name]] is True

    assert await bench.engine.networks(bench.labels) == []
    await bench.engine.remove_network(made)


async def test_the_removal_script_takes_networks_too(bench: Bench):
    name = f"sanduk-test-{bench.labels['sanduk.run']}"
    await bench.engine.create_network(name, bench.labels, internal=False)
    container = await bench.engine.create(bench.spec("sleep", "60", network=name))
    process = await bench.engine.start_attached(container)
    undertaker = await asyncio.create_subprocess_exec(
        "sh", "-c", bench.engine.removal_script(bench.labels)
    )
    await undertaker.wait()
    await process.communicate()

    assert await bench.engine.networks(bench.labels) == []
    assert await bench.engine.inspect(container) is None


async def test_two_runs_do_not_reach_each_other(bench: Bench):
    if shutil.which("iptables") is None:
        pytest.skip("no iptables: the engine cannot keep networks apart")
    first, second = (f"sanduk-test-{bench.labels['sanduk.run']}-{n}" for n in (1, 2))
    async with network(bench, first), network(bench, second), _server(bench, first) as address:
        out, _, _ = await bench.finished(
            bench.spec("python3", "-c", REACH, address, network=second)
        )

    assert out == b"closed\n"


async def test_neighbours_on_one_network_of_docker_do_not_reach_each_other(bench: Bench):
    if bench.engine.name != "docker":
        pytest.skip("podman has no such switch: each run has a network of its own")
    name = f"sanduk-test-{bench.labels['sanduk.run']}"
    async with network(bench, name), _server(bench, name) as address:
        closed, _, _ = await bench.finished(
            bench.spec("python3", "-c", REACH, address, network=name)
        )
    # The same on an ordinary network, to see that the question can be answered otherwise.
    ordinary = f"{name}-open"
    label = f"sanduk.run={bench.labels['sanduk.run']}"
    assert told("docker", "network", "create", "--label", label, ordinary).returncode == 0
    try:
        async with _server(bench, ordinary) as address:
            reached, _, _ = await bench.finished(
                bench.spec("python3", "-c", REACH, address, network=ordinary)
            )
    finally:
        for row in await bench.engine.containers(bench.labels):
            await bench.engine.remove([row.id])
        told("docker", "network", "rm", ordinary)

    assert (closed, reached) == (b"closed\n", b"reached\n")


@contextlib.asynccontextmanager
async def _server(bench: Bench, network: str) -> AsyncIterator[str]:
    """A container that listens on port 8000 of its network; yields its address."""
    container = await bench.engine.create(bench.spec("python3", "-uc", SERVE, network=network))
    process = await bench.engine.start_attached(container)
    try:
        assert process.stdout is not None
        address = (await asyncio.wait_for(process.stdout.readline(), 20)).split()[0].decode()
        yield address
    finally:
        await bench.engine.remove([container])
        await process.communicate()
