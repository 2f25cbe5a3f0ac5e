"""One call to the provider: what is sent, what comes back, and how it fails."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from relay.connection import (
    MAX_HEAD_BYTES,
    UpstreamBroken,
    UpstreamError,
    UpstreamSilent,
    UpstreamUnreachable,
)
from relay.endpoints import Endpoint
from relay.upstream import UpstreamClient
from tests.relay.stand import chunked, free_port, listening, plain, saying, saying_and_closing
from tests.relay.upstream_calls import HOST, call, calling

pytestmark = pytest.mark.anyio


async def test_a_request_is_sent_as_given():
    async with calling(saying(plain(b"ok"))) as client:
        assert (await call(client, b"body"))[2] == b"ok"
        seen = client.provider.seen[0]
        assert (seen.method, seen.target, seen.body) == ("POST", "/v1/messages", b"body")
        assert seen.headers == [("host", "provider"), ("content-length", "4")]


async def test_a_get_has_no_content_length_and_an_empty_post_says_zero():
    async with calling(saying(plain(b"ok"))) as client:
        await call(client, b"", b"GET")
        await call(client, b"", b"POST")
        get, post = client.provider.seen
        assert get.values("content-length") == []
        assert post.values("content-length") == ["0"]


async def test_a_request_is_never_sent_twice():
    async with calling(saying(plain(b"ok"))) as client:
        await call(client)

        async def hang_up(seen, writer):
            return True

        client.provider.answer = hang_up
        with pytest.raises(UpstreamBroken, match="without an answer"):
            await call(client)
        assert len(client.provider.seen) == 2


async def test_interim_answers_are_consumed():
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
    async with calling(saying(interim + plain(b"ok", "x-a: b"))) as client:
        status, headers, body = await call(client)
        assert (status, body) == (200, b"ok")
        assert [name for name, _ in headers] == [b"content-length", b"x-a"]


async def test_trailers_are_consumed_and_leave_no_trace():
    answer = chunked(b"ok", headers=("x-a: b",), end=b"0\r\nx-trailer: 1\r\nx-two: 2\r\n\r\n")
    async with calling(saying(answer)) as client:
        for _ in range(2):
            _, headers, body = await call(client)
            assert body == b"ok"
            assert [name for name, _ in headers] == [b"transfer-encoding", b"x-a"]
        assert client.opened == 1


async def test_a_head_answer_has_no_body_whatever_it_declares():
    async with calling(saying(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n")) as client:
        for _ in range(2):
            assert (await call(client, b"", b"HEAD"))[2] == b""
        assert client.opened == 1


async def test_one_read_gives_what_arrived_joined_and_says_when_it_is_the_end():
    async with calling(saying(chunked(b"a", b"b", b"c"))) as client:
        exchange = client.exchange()
        await exchange.send(b"POST", b"/", HOST, b"")
        await asyncio.sleep(0.02)
        assert await exchange.read() == (b"abc", False)
        exchange.close()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "without an answer"),
        (b"HTTP/1.1 200 OK\r\n", "without an answer"),
        (b"nonsense\r\n\r\n", "no HTTP"),
        (plain(b"okay")[:-1], "cut its answer short"),
        (chunked(b"okay", end=b""), "cut its answer short"),
        (chunked(b"okay", end=b"0\r\n"), "cut its answer short"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 300 + b"\r\n", "too many headers"),
        (b"HTTP/1.1 200 OK\r\na: " + b"b" * 2 * MAX_HEAD_BYTES, "too large"),
        (b"HTTP/1.1 600 Odd\r\n\r\n", "impossible status"),
    ],
)
async def test_what_is_not_a_whole_answer_is_an_error(answer, words):
    async with calling(saying_and_closing(answer)) as client:
        with pytest.raises(UpstreamBroken, match=words):
            await call(client)


async def test_endless_headers_are_cut_off_early():
    received = 0

    async def answer(seen, writer):
        nonlocal received
        writer.write(b"HTTP/1.1 200 OK\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(100_000):
                writer.write(b"x: " + b"y" * 1000 + b"\r\n")
                received += 1005
                await writer.drain()
        return True

    async with calling(answer) as client:
        with pytest.raises(UpstreamBroken, match="headers"):
            await call(client)
    assert received < 20_000_000


async def test_silence_is_an_error_naming_the_time():
    async def answer(seen, writer):
        await asyncio.sleep(60)

    async with calling(answer, idle_timeout_s=0.05) as client:
        with pytest.raises(UpstreamSilent, match=r"0\.05 s"):
            await call(client)


async def test_a_provider_that_does_not_read_is_silent_too():
    async def never_read(reader, writer):
        await asyncio.sleep(60)

    async with listening(never_read, limit=1024) as port:
        client = UpstreamClient(Endpoint("http", "127.0.0.1", port), idle_timeout_s=0.2)
        task = asyncio.create_task(call(client, b"x" * 30_000_000))
        await asyncio.sleep(0.1)
        (connection,) = client._all
        assert connection._transport.get_write_buffer_size() < 2_000_000
        with pytest.raises(UpstreamSilent):
            await task
        await client.aclose()


async def test_an_early_answer_ends_the_sending_of_a_large_body():
    async def refuse(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(plain(b"too large", status="413 Too Large"))
        await writer.drain()
        await asyncio.sleep(60)

    async with listening(refuse, limit=70_000) as port:
        client = UpstreamClient(Endpoint("http", "127.0.0.1", port))
        async with asyncio.timeout(3):
            status, _, body = await call(client, b"x" * 30_000_000)
        assert (status, body) == (413, b"too large")
        await client.aclose()


async def test_a_large_body_arrives_whole():
    body = bytes(range(256)) * 40_000
    async with calling(saying(plain(b"ok"))) as client:
        await call(client, body)
        await call(client, body)
        assert [seen.body == body for seen in client.provider.seen] == [True, True]
        assert client.opened == 1


async def test_nobody_listening_is_unreachable():
    client = UpstreamClient(Endpoint("http", "127.0.0.1", free_port()))
    with pytest.raises(UpstreamUnreachable, match="refused"):
        await call(client)


async def test_a_name_that_does_not_exist_is_unreachable():
    client = UpstreamClient(Endpoint("http", "nowhere.invalid", 80), connect_timeout_s=10)
    with pytest.raises(UpstreamUnreachable, match=r"nowhere\.invalid"):
        await call(client)


async def test_an_interrupted_exchange_ends_with_the_given_reason():
    async def answer(seen, writer):
        await asyncio.sleep(60)

    async with calling(answer) as client:
        exchange = client.exchange()
        asyncio.get_running_loop().call_later(0.02, exchange.interrupt, LookupError("gone"))
        with pytest.raises(LookupError, match="gone"):
            await exchange.send(b"POST", b"/", HOST, b"")
        exchange.close()


async def test_an_exchange_interrupted_before_it_began_sends_nothing():
    async with calling(saying(plain(b"ok"))) as client:
        exchange = client.exchange()
        exchange.interrupt(LookupError("gone"))
        with pytest.raises(LookupError):
            await exchange.send(b"POST", b"/", HOST, b"")
        exchange.close()
        await call(client)
        assert len(client.provider.seen) == 1


async def test_closing_the_client_ends_calls_under_way():
    async def answer(seen, writer):
        await asyncio.sleep(60)

    async with calling(answer) as client:
        task = asyncio.create_task(call(client))
        await client.provider.asked.wait()
        await client.aclose()
        with pytest.raises(UpstreamError):
            await task
