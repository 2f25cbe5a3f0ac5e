"""Request bodies at the gate: their size, their framing, the memory and time they take."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.relay.stand import KEY, OK, request, standing, status_of

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("framing", ["declared", "chunked"])
async def test_a_body_over_the_limit_is_refused_and_reaches_nobody(framing):
    async with standing(OK, max_body_bytes=1000) as stand:

        async def pieces():
            for _ in range(100):
                yield b"x" * 100

        content = b"x" * 10_000 if framing == "declared" else pieces()
        answer = await stand.post(content=content)
        assert answer.status_code == 413
        assert "1,000 bytes" in answer.json()["error"]["message"]
        assert stand.provider.seen == []
        assert (await stand.record()).refusal == "body-size"
        assert (await stand.post(content=b"x" * 1000)).status_code == 200


async def test_large_bodies_together_cannot_fill_the_memory():
    async with standing(OK, max_body_bytes=1000, max_buffered_bytes=1500) as stand:
        for _ in range(5):  # what has passed counts no more, and does not count twice
            assert (await stand.post(content=b"x" * 900)).status_code == 200
        reader, writer = await stand.connect()
        writer.write(request(body=b"x" * 1000)[:-1])  # one call holds 999 bytes and waits
        await writer.drain()
        while stand.ledger.in_flight < 1:
            await stand.raw(request("/v1/files", b""))
        refused = await stand.post(content=b"x" * 900)
        assert (refused.status_code, refused.json()["error"]["rule"]) == (503, "buffer")
        writer.write(b"x")
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()
        assert (await stand.post(content=b"x" * 900)).status_code == 200


async def test_a_body_is_let_go_once_it_is_sent():
    go_on = asyncio.Event()

    async def answer(seen, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n")
        await writer.drain()
        await go_on.wait()
        writer.write(b"x")

    async with standing(answer, max_buffered_bytes=1000) as stand:
        streams = [await stand.connect() for _ in range(3)]
        for reader, writer in streams:  # each alone fits, all three together would not
            writer.write(request(body=b"y" * 900))
            await reader.readuntil(b"\r\n\r\n")
        go_on.set()
        for reader, writer in streams:
            assert await reader.read() == b"x"
            writer.close()


async def test_a_client_that_owes_its_body_is_not_waited_for():
    async with standing(OK, body_timeout_s=0.05) as stand:
        answer = await stand.raw(request(body=b"x" * 100)[:-1])
        assert status_of(answer) == 408
        assert stand.provider.seen == []


async def test_a_get_request_with_a_body_is_refused():
    async with standing(OK) as stand:
        answer = await stand.raw(request("/v1/models", b"{}", method="GET"))
        assert (status_of(answer), stand.provider.seen) == (400, [])


async def test_expect_continue_is_answered_only_when_the_body_is_wanted():
    async with standing(OK, max_body_bytes=10) as stand:
        head = request(body=b"", close=False)[:-2]
        good = head + b"expect: 100-continue\r\ncontent-length: 2\r\nconnection: close\r\n\r\n"
        reader, writer = await stand.connect()
        writer.write(good)
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"{}")
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()
        refused = await stand.raw(head + b"expect: 100-continue\r\ncontent-length: 11\r\n\r\n")
        assert status_of(refused) == 413
        assert not any("expect" in dict(seen.headers) for seen in stand.provider.seen)


SMUGGLING = [
    b"content-length: 2\r\ntransfer-encoding: chunked",
    b"content-length: 2\r\ncontent-length: 3",
    b"content-length: 2, 3",
    b"content-length: +2",
    b"content-length: -1",
    b"content-length: 0x2",
    b"content-length : 2",
    b"transfer-encoding: gzip, chunked",
    b"transfer-encoding: chunked, identity",
    b"transfer-encoding: identity",
    b"transfer-encoding: xchunked",
    b"transfer-encoding:\x0bchunked",
    b"x-a: b\r\n folded",
    b"x-a: b\rx-c: d",
    b"x-a: b\nx-c: d",
    b"x-a\x00b: c",
    b"x-a: b\x00c",
    b"x a: b",
    b": b",
]


@pytest.mark.parametrize("headers", SMUGGLING)
async def test_ambiguous_framing_and_malformed_headers_reach_nobody(headers):
    async with standing(OK) as stand:
        head = request(body=b"", close=False)[:-2] + headers + b"\r\nconnection: close\r\n\r\n"
        inner = request("/v1/models", b"", method="GET")
        answer = await stand.raw(head + b"0\r\n\r\n" + inner)
        assert status_of(answer) in (400, 413)
        assert stand.provider.seen == []


NOISE = [
    *(b"\r\n", b"\n", b"\r", b" ", b":", b"\x00", b"#", b"?", b"/", b"%2f", b"0"),
    *(b"host: b\r\n", b"content-length: 5\r\n", b"transfer-encoding: chunked\r\n"),
    *(b"GET /x HTTP/1.1\r\n", b"upgrade: websocket\r\n", b"connection: upgrade\r\n"),
]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_whatever_a_client_sends_the_provider_sees_only_what_was_judged(data):
    """Random edits of a good request: the provider gets a clean one with the key, or nothing."""
    good = request("/v1/messages?beta=true", b'{"model":"m"}', "x-note: 1")
    raw = bytearray(good)
    noise = st.sampled_from(NOISE)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw)))
        raw[at : at + data.draw(st.integers(0, 2))] = data.draw(noise)
    async with standing(OK, body_timeout_s=0.02) as stand:
        answer = await stand.prod(bytes(raw) + b"\r\n\r\n")
        assert answer == b"" or status_of(answer) >= 200
        for seen in stand.provider.seen:
            assert seen.method == "POST"
            assert seen.target in (
                "/v1/messages",
                "/v1/messages?beta",
                "/v1/messages?beta=true",
            ) or (seen.target.startswith("/v1/messages?beta="))
            assert seen.values("x-api-key") == [KEY]
            assert len(seen.values("host")) == 1
            assert len(seen.values("content-length")) == 1
            assert seen.values("transfer-encoding") == []
