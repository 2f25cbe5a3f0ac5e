"""How a tunnel of the egress door fails, ends and is recorded."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import tempfile
import time
from pathlib import Path

import pytest

from relay.destinations import egress_rules
from relay.egress import serving_egress
from relay.sockets import bind_unix, connected_unix
from tests.pace import stretched
from tests.relay.egress_door import NAME, door, echo, echo_door
from tests.relay.stand import free_port, listening

pytestmark = pytest.mark.anyio


async def test_a_name_that_does_not_resolve_is_a_failure_not_a_refusal():
    async with door("nowhere.vendor.test") as opened:
        answer = await opened.refusal("nowhere.vendor.test:443")
        assert answer.startswith("HTTP/1.1 502 ")
        attempt = await opened.attempt()
        assert (attempt.allowed, attempt.reason) == (True, "the name does not resolve")


async def test_a_host_where_nobody_listens_is_a_failure():
    port = free_port()
    async with door(f"{NAME}:{port}", admit=[f"127.0.0.1:{port}"]) as opened:
        assert (await opened.refusal(f"{NAME}:{port}")).startswith("HTTP/1.1 502 ")
        assert "refused" in (await opened.attempt()).reason


async def test_the_next_address_is_tried_when_one_does_not_answer():
    async with listening(echo) as port:
        names = {NAME: ["127.0.0.2", "127.0.0.1"]}
        admit = [f"127.0.0.1:{port}", f"127.0.0.2:{port}"]
        async with door(f"{NAME}:{port}", names=names, admit=admit) as opened:
            async with opened.tunnel(f"{NAME}:{port}") as (answer, _, _):
                assert answer.startswith(b"HTTP/1.1 200 ")
            assert (await opened.attempt()).address == "127.0.0.1"


async def test_a_look_up_that_hangs_is_left():
    async def hang(host, port):
        await asyncio.sleep(60)

    async with door(NAME, resolve=hang, connect_timeout_s=0.1) as opened:
        assert (await opened.refusal(f"{NAME}:443")).startswith("HTTP/1.1 502 ")
        attempt = await opened.attempt()
        assert attempt.reason == "the name did not resolve within 0.1 s"


async def test_a_tunnel_in_which_nothing_moves_is_ended():
    async with echo_door(idle_timeout_s=0.15) as (opened, port):
        async with opened.tunnel(f"{NAME}:{port}") as (_, reader, writer):
            for _ in range(5):  # what moves is not idle, however long it lasts
                writer.write(b"ping")
                assert await reader.readexactly(4) == b"ping"
                await asyncio.sleep(0.06)
            assert await reader.read() == b""
        assert "nothing moved" in (await opened.attempt()).reason


async def test_a_reset_by_the_host_ends_the_tunnel():
    async def reset(reader, writer):
        writer.write(b"half")
        await writer.drain()
        linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    async with echo_door(reset) as (opened, port):
        async with opened.tunnel(f"{NAME}:{port}") as (_, reader, writer):
            writer.write(b"x")
            with contextlib.suppress(ConnectionError):
                async with asyncio.timeout(5):
                    await reader.read()
        assert (await opened.attempt()).ended_at is not None


async def test_a_client_that_vanishes_closes_the_way_out():
    gone = asyncio.Event()

    async def watch(reader, writer):
        await reader.read()
        gone.set()

    async with echo_door(watch) as (opened, port):
        async with opened.tunnel(f"{NAME}:{port}") as (_, _, writer):
            writer.write(b"x")
        async with asyncio.timeout(5):
            await gone.wait()
        await opened.attempt()


async def test_too_many_tunnels_are_told_so_and_room_is_made_again():
    async with echo_door(max_tunnels=2) as (opened, port):
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(2):
                await stack.enter_async_context(opened.tunnel(f"{NAME}:{port}"))
            assert (await opened.refusal(f"{NAME}:{port}")).startswith("HTTP/1.1 503 ")
        await opened.attempt(3)
        async with opened.tunnel(f"{NAME}:{port}") as (answer, _, _):
            assert answer.startswith(b"HTTP/1.1 200 ")


async def test_closing_the_door_ends_every_tunnel_at_once_and_records_it():
    async with echo_door() as (opened, port):
        readers = []
        for _ in range(10):
            head = f"CONNECT {NAME}:{port} HTTP/1.1\r\n\r\n"
            _, reader, writer = await opened.say(head.encode())
            writer.write(b"x")
            readers.append((reader, writer))
        started = time.monotonic()
    assert time.monotonic() - started < stretched(1)
    assert [a.reason for a in opened.attempts] == ["the run ended"] * 10
    for _, writer in readers:
        writer.transport.abort()
    await asyncio.sleep(0)


async def test_closing_the_door_does_not_wait_for_a_look_up(monkeypatch):
    monkeypatch.setattr("relay.egress.socket.getaddrinfo", lambda *_, **__: time.sleep(1.5) or [])
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "egress.sock"
        async with serving_egress(egress_rules([NAME]), bind_unix(path), lambda _: None):
            _, writer = await asyncio.open_unix_connection(sock=connected_unix(path))
            writer.write(f"CONNECT {NAME}:443 HTTP/1.1\r\n\r\n".encode())
            await asyncio.sleep(0.1)
            started = time.monotonic()
        assert time.monotonic() - started < stretched(0.5)
        writer.transport.abort()
        await asyncio.sleep(0)


async def test_a_listener_that_fails_closes_no_door(caplog):
    def fail(attempt):
        raise RuntimeError("listener")

    async with door(NAME, listener=fail) as opened:
        for _ in range(2):
            assert (await opened.refusal("other.test:443")).startswith("HTTP/1.1 403 ")
        await opened.attempt(2)
    assert "attempt 1" in caplog.text
