"""What is said to the egress door that is no plain CONNECT, or comes too slowly."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay.sockets import connected_unix
from relay.tunnel import MAX_HEAD_BYTES
from tests.relay.egress_door import NAME, PROVIDER, door, echo_door

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 405),
        (b"POST http://files.vendor.test/ HTTP/1.1\r\n\r\n", 405),
        (b"CONNECT files.vendor.test HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT files.vendor.test: HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:443 HTTP/2.0\r\n\r\n", 400),
        (b"CONNECT  files.vendor.test:443 HTTP/1.1\r\n\r\n", 400),
        (b"connect files.vendor.test:443 HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT http://files.vendor.test:443/ HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT me@files.vendor.test:443 HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:443/x HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT files.vendor.test%00.evil:443 HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:443#x HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:0443443 HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:443 HTTP/1.1\r\nx\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:443 HTTP/1.1\r\na: 1\r\n b: 2\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:443 HTTP/1.1\r\na : 1\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:443 HTTP/1.1\r\na: \x00\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:443 HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:443 HTTP/1.1\nhost: x\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\r\n\r\n", 400),
        (b"CONNECT x:1 HTTP/1.1\r\nx: " + b"x" * (MAX_HEAD_BYTES + 100), 431),
    ],
)
async def test_whatever_is_no_plain_connect_is_refused_and_recorded(head, status):
    async with door(NAME) as opened:
        answer, _, writer = await opened.say(head)
        writer.transport.abort()
        assert answer.startswith(b"HTTP/1.1 %d " % status), answer
        attempt = await opened.attempt()
        assert not attempt.allowed
        assert attempt.reason
        assert opened.looked_up == []


async def test_plain_http_through_the_proxy_variable_is_recorded_by_its_host():
    async with door(NAME) as opened:
        answer, _, writer = await opened.say(b"GET http://Files.vendor.test/x HTTP/1.1\r\n\r\n")
        writer.transport.abort()
        assert b"allow: CONNECT\r\n" in answer
        attempt = await opened.attempt()
        assert (attempt.host, attempt.port) == (NAME, 80)


async def test_a_host_header_is_not_the_host():
    async with door(NAME) as opened:
        head = f"CONNECT other.vendor.test:443 HTTP/1.1\r\nhost: {NAME}:443\r\n\r\n"
        answer, _, writer = await opened.say(head.encode())
        writer.transport.abort()
        assert answer.startswith(b"HTTP/1.1 403 ")


async def test_a_head_that_trickles_is_ended():
    async with door(NAME, head_time_s=0.1) as opened:
        answer, _, writer = await opened.say(b"CONNECT files")
        writer.transport.abort()
        assert answer.startswith(b"HTTP/1.1 408 ")


async def test_a_tls_greeting_that_trickles_is_ended():
    async with echo_door(head_time_s=0.1) as (opened, port):
        async with opened.tunnel(f"{NAME}:{port}") as (_, reader, writer):
            writer.write(b"\x16\x03\x01\x02\x00\x01")
            async with asyncio.timeout(5):
                assert await reader.read() == b""
        attempt = await opened.attempt()
        assert (attempt.bytes_out, attempt.bytes_in) == (0, 0)
        assert "greeting" in attempt.reason


async def test_tls_that_does_not_begin_with_its_greeting_is_ended():
    async with echo_door() as (opened, port):
        async with opened.tunnel(f"{NAME}:{port}") as (_, reader, writer):
            writer.write(b"\x15\x03\x01\x00\x02\x01\x00")
            async with asyncio.timeout(5):
                assert await reader.read() == b""
        assert (await opened.attempt()).bytes_in == 0


async def test_a_connection_without_a_word_is_no_attempt():
    async with door(NAME) as opened:
        _, writer = await asyncio.open_unix_connection(sock=connected_unix(opened.path))
        writer.transport.abort()
        await asyncio.sleep(0.05)
        assert opened.attempts == []


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    pieces=st.lists(
        st.one_of(
            st.binary(max_size=200),
            st.sampled_from(
                [
                    b"CONNECT ",
                    b"files.vendor.test:443",
                    b" HTTP/1.1",
                    b"\r\n",
                    b"\r\n\r\n",
                    b"host: ",
                ]
            ),
        ),
        max_size=8,
    )
)
def test_hostile_bytes_never_open_or_break_the_door(pieces):
    async def scenario():
        async with door(PROVIDER + "x", head_time_s=0.05) as opened:
            _, writer = await asyncio.open_unix_connection(sock=connected_unix(opened.path))
            for piece in pieces:
                writer.write(piece)
            writer.write_eof()
            await asyncio.sleep(0)
            assert (await opened.refusal("other.test:443")).startswith("HTTP/1.1 403 ")
            writer.transport.abort()
            await asyncio.sleep(0)
            assert opened.looked_up == []
            assert not any(attempt.allowed for attempt in opened.attempts)

    asyncio.run(scenario())
