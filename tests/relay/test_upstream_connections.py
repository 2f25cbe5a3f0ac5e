"""Connections to the provider: kept, reused, dropped, never mixed up."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest

import relay.connection
import relay.upstream
from relay.connection import UpstreamBroken
from relay.endpoints import Endpoint
from relay.sockets import bind_unix
from relay.upstream import UpstreamClient
from tests.relay.stand import plain, saying, saying_and_closing
from tests.relay.upstream_calls import HOST, call, calling

pytestmark = pytest.mark.anyio


async def test_connections_are_reused_the_warmest_first():
    async with calling(saying(plain(b"ok"))) as client:
        await asyncio.gather(*(call(client) for _ in range(3)))
        assert client.opened == 3
        client.provider.seen.clear()
        for _ in range(5):
            await call(client)
        assert client.opened == 3
        assert len({seen.connection for seen in client.provider.seen}) == 1


@pytest.mark.parametrize(
    "answer",
    [
        plain(b"ok", "connection: close"),
        b"HTTP/1.1 200 OK\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ],
)
async def test_a_connection_that_ends_is_not_reused(answer):
    async with calling(saying_and_closing(answer)) as client:
        assert (await call(client))[2] == b"ok"
        assert (await call(client))[2] == b"ok"
        assert client.opened == 2


async def test_bytes_after_the_answer_spoil_the_connection_not_the_answer():
    async with calling(saying(plain(b"ok") + b"HTTP/1.1 200 OK\r\n")) as client:
        assert (await call(client))[2] == b"ok"
        assert (await call(client))[2] == b"ok"
        assert client.opened == 2


async def test_bytes_between_answers_are_never_taken_for_the_next_answer():
    async def answer(seen, writer):
        writer.write(plain(b"ok"))
        await writer.drain()
        await asyncio.sleep(0.02)
        writer.write(plain(b"forged"))

    async with calling(answer) as client:
        assert (await call(client))[2] == b"ok"
        await asyncio.sleep(0.06)
        assert (await call(client))[2] == b"ok"
        assert client.opened == 2


async def test_a_connection_the_provider_closed_meanwhile_costs_no_call():
    """The provider closes after each answer, and the loop gets no chance to see it."""
    closed = threading.Event()

    def provide(listener):
        for _ in range(2):
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(5)
                connection.recv(65536)
                connection.sendall(plain(b"ok"))
                time.sleep(0.05)
            closed.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(5)
        thread = threading.Thread(target=provide, args=(listener,), daemon=True)
        thread.start()
        client = UpstreamClient(Endpoint("http", "127.0.0.1", listener.getsockname()[1]))
        assert (await call(client))[2] == b"ok"
        assert closed.wait(5)
        assert (await call(client))[2] == b"ok"
        assert client.opened == 2
        await client.aclose()
        thread.join()


async def test_idle_connections_are_dropped_in_time(monkeypatch):
    monkeypatch.setattr(relay.upstream, "_KEEP_PLAIN_S", 0.03)
    async with calling(saying(plain(b"ok"))) as client:
        await call(client)
        async with asyncio.timeout(2):
            await client.provider.gone.wait()
        await call(client)
        assert client.opened == 2


async def test_the_providers_own_keep_alive_time_is_heeded():
    async with calling(saying(plain(b"ok", "keep-alive: max=100, timeout=1"))) as client:
        await call(client)
        async with asyncio.timeout(1):
            await client.provider.gone.wait()


async def test_a_provider_behind_a_unix_socket_at_a_long_path_is_reached(tmp_path):
    path = tmp_path / ("d" * 100) / ("e" * 100) / "model.sock"
    path.parent.mkdir(parents=True)

    async def greet(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(plain(b"hello"))
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(greet, sock=bind_unix(path))
    client = UpstreamClient(Endpoint.at_socket(str(path)))
    assert (await call(client, b"", b"GET"))[2] == b"hello"
    await client.aclose()
    server.close()


async def test_a_connection_that_ended_by_itself_is_not_ended_again():
    """asyncio's transport fails at an abort after it has closed with its last bytes sent."""

    class Ended:
        def is_closing(self):
            return True

        def get_extra_info(self, name):
            return sock

        def abort(self):
            raise AttributeError("no loop")

    gone = []
    connection = relay.connection.Connection(gone.append, 1.0)
    with socket.socket() as sock:
        connection.connection_made(Ended())
        connection.connection_lost(None)
        connection.abort(UpstreamBroken("over"))
        assert connection in gone
        assert not connection.wake()
        with pytest.raises(UpstreamBroken, match="without an answer"):
            await connection.request(b"GET", b"/", HOST, b"")
