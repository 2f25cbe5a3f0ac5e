"""Our client and httpx read the same bytes: they must agree on every whole answer and every cut."""

from __future__ import annotations

import asyncio
import contextlib

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay.connection import UpstreamError
from relay.endpoints import Endpoint
from relay.upstream import UpstreamClient

pytestmark = pytest.mark.anyio

names = st.from_regex(r"x-[a-z]{1,8}", fullmatch=True)
values = st.from_regex(r"[!-~]([ -~]{0,20}[!-~])?", fullmatch=True)
headers = st.lists(st.tuples(names, values), max_size=6)
pieces = st.lists(st.binary(max_size=3000), max_size=6)
trailers = st.sampled_from([b"", b"x-trailer: 1\r\n", b"x-a: 1\r\nx-b: 2\r\n"])


@st.composite
def answers(draw):
    """An answer as bytes on the wire, whether it ends with the connection, and a cut or None."""
    status = draw(st.sampled_from([200, 201, 204, 304, 400, 401, 429, 500, 529, 599]))
    body = draw(pieces)
    head = b"".join(
        f"HTTP/1.1 100 Continue\r\nx-early: {n}\r\n\r\n".encode()
        for n in range(draw(st.integers(0, 2)))
    )
    head += f"HTTP/1.1 {status} Whatever\r\n".encode()
    head += b"".join(f"{name}: {value}\r\n".encode() for name, value in draw(headers))
    framing = draw(st.sampled_from(["length", "chunked", "close"]))
    if status in (204, 304):
        wire = head + b"\r\n"
    elif framing == "length":
        joined = b"".join(body)
        wire = head + b"content-length: %d\r\n\r\n" % len(joined) + joined
    elif framing == "chunked":
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in body if p)
        wire = (
            head
            + b"transfer-encoding: chunked\r\n\r\n"
            + chunks
            + b"0\r\n"
            + draw(trailers)
            + b"\r\n"
        )
    else:
        wire = head + b"\r\n" + b"".join(body)
    cut = draw(st.one_of(st.none(), st.integers(0, len(wire))))
    return wire[:cut], draw(st.lists(st.integers(1, 4000), max_size=5))


@contextlib.asynccontextmanager
async def wire_server(wire: bytes, sizes: list[int]):
    """Send the bytes in the given portions and close."""

    async def serve(reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            rest = wire
            for size in sizes:
                writer.write(rest[:size])
                rest = rest[size:]
                await writer.drain()
                await asyncio.sleep(0)
            writer.write(rest)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def ours(port: int):
    client = UpstreamClient(Endpoint("http", "127.0.0.1", port))
    exchange = client.exchange()
    body = b""
    try:
        await exchange.send(b"GET", b"/", [(b"host", b"a")], b"")
        more = True
        while more:
            piece, more = await exchange.read()
            body += piece
        return exchange.status, sorted(exchange.headers), body
    except UpstreamError:
        return "error"
    finally:
        exchange.close()
        await client.aclose()


async def theirs(port: int):
    async with httpx.AsyncClient(trust_env=False) as client:
        try:
            async with client.stream("GET", f"http://127.0.0.1:{port}/") as response:
                body = b"".join([piece async for piece in response.aiter_raw()])
                found = sorted((name.lower(), value) for name, value in response.headers.raw)
                return response.status_code, found, body
        except httpx.HTTPError:
            return "error"


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(answer=answers())
async def test_both_clients_read_the_same_from_the_same_bytes(answer):
    wire, sizes = answer
    async with wire_server(wire, sizes) as port:
        mine = await ours(port)
    async with wire_server(wire, sizes) as port:
        assert mine == await theirs(port)
