"""Nothing a client or a provider does stops other calls or grows memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import time
from pathlib import Path

import pytest

from relay.connection import MAX_HEAD_BYTES
from relay.server import MAX_CONNECTIONS
from tests.pace import stretched
from tests.relay.stand import OK, chunked, listening, plain, request, standing

pytestmark = pytest.mark.anyio
MIB = 1024 * 1024


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Growth:
    """The most this process grew beyond its size at the start."""

    def __init__(self) -> None:
        self.start = resident_bytes()
        self.most = 0

    def look(self) -> None:
        self.most = max(self.most, resident_bytes() - self.start)


async def test_ten_thousand_idle_connections_keep_nobody_out_and_cost_little():
    # our ends of them need descriptors too; a machine that gives fewer tries as many as it can
    count = min(10_000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - MAX_CONNECTIONS - 200)
    async with standing(OK) as stand:
        await stand.raw(request())
        growth = Growth()
        idle = []
        try:
            for _ in range(count):
                idle.append(await stand.connect())
            started = time.monotonic()
            assert (await stand.raw(request())).startswith(b"HTTP/1.1 200")
            assert time.monotonic() - started < stretched(1)
            growth.look()
            assert growth.most < 120 * MIB  # both ends of each are in this process
        finally:
            for _, writer in idle:
                writer.transport.abort()
            await asyncio.sleep(0)


async def test_clients_that_dribble_keep_nobody_out():
    async with standing(OK) as stand:
        slow = [await stand.connect() for _ in range(200)]

        async def dribble(writer):
            with contextlib.suppress(ConnectionError):
                for letter in request():
                    writer.write(bytes([letter]))
                    await writer.drain()
                    await asyncio.sleep(0.02)

        tasks = [asyncio.create_task(dribble(writer)) for _, writer in slow]
        for _ in range(5):
            started = time.monotonic()
            assert (await stand.raw(request())).startswith(b"HTTP/1.1 200")
            assert time.monotonic() - started < stretched(1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _, writer in slow:
            writer.transport.abort()
        await asyncio.sleep(0)
        assert all(seen.body == b"{}" for seen in stand.provider.seen)


async def test_a_body_of_299_mb_is_refused_without_being_held():
    async with standing(OK, max_body_bytes=8 * MIB) as stand:
        growth = Growth()
        reader, writer = await stand.connect()
        writer.write(request(body=b"", close=False)[:-2] + b"transfer-encoding: chunked\r\n\r\n")
        piece = b"%x\r\n%b\r\n" % (MIB, b"x" * MIB)
        with contextlib.suppress(ConnectionError):
            for _ in range(299):
                writer.write(piece)
                await writer.drain()
                growth.look()
        with contextlib.suppress(ConnectionError):
            assert (await reader.read()).startswith(b"HTTP/1.1 413")
        writer.transport.abort()
        await asyncio.sleep(0)
        assert growth.most < 60 * MIB
        assert stand.provider.seen == []
        assert (await stand.raw(request())).startswith(b"HTTP/1.1 200")


async def test_half_an_event_without_end_passes_and_does_not_pile_up():
    size = 96

    async def endless(seen, writer):
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + b'data: {"usage": "')
        for _ in range(size):
            writer.write(b"x" * MIB)
            await writer.drain()
        return True

    async with standing(endless) as stand:
        growth = Growth()
        reader, writer = await stand.connect()
        writer.write(request())
        total = 0
        while piece := await reader.read(MIB):
            total += len(piece)
            growth.look()
        writer.transport.abort()
        assert total > size * MIB
        assert growth.most < 64 * MIB
        record = await stand.record()
        assert record.usage is None
        assert record.completed


@pytest.mark.parametrize("line", [b"x-pad: " + b"y" * 1000 + b"\r\n", b"y" * 1000])
async def test_100_mb_of_headers_are_cut_off_early(line):
    written = []

    async def flood(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for _ in range(100_000):
            writer.write(line)
            written.append(len(line))
            await writer.drain()

    async with listening(flood) as port, standing(OK) as stand:
        stand.app.client.endpoint = type(stand.app.client.endpoint)("http", "127.0.0.1", port)
        growth = Growth()
        answer = await stand.raw(request())
        growth.look()
        assert answer.startswith(b"HTTP/1.1 502")
        assert growth.most < 32 * MIB
        assert sum(written) < MAX_HEAD_BYTES + 16 * MIB
        assert "header" in (await stand.record()).error or "HTTP" in stand.records[0].error


async def test_a_provider_that_hangs_in_one_call_holds_up_no_other():
    async def answer(seen, writer):
        if b"hang" in seen.body:
            writer.write(chunked(b"data: half", end=b""))
            await writer.drain()
            await asyncio.sleep(60)
        writer.write(plain(b"{}"))

    async with standing(answer) as stand:
        hanging = []
        for _ in range(50):
            reader, writer = await stand.connect()
            writer.write(request(body=b'{"hang":1}'))
            hanging.append((reader, writer))
        for reader, _ in hanging:
            assert b"data: half" in await reader.readuntil(b"half")
        started = time.monotonic()
        for _ in range(10):
            assert (await stand.raw(request())).startswith(b"HTTP/1.1 200")
        assert time.monotonic() - started < stretched(2)
        for _, writer in hanging:
            writer.transport.abort()
        await stand.record(60)
        assert stand.ledger.in_flight == 0
