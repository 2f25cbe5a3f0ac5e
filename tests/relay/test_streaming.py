"""The way back: as it arrives, byte for byte, and a cut stays a cut."""

from __future__ import annotations

import asyncio

import httpx
import pytest

import relay
from relay.records import Usage
from tests.relay.stand import (
    KEY,
    TOKEN,
    Stand,
    chunked,
    free_port,
    plain,
    request,
    saying,
    saying_and_closing,
    sse,
    standing,
)

pytestmark = pytest.mark.anyio
HEADERS = {"x-api-key": TOKEN}
STREAM = (
    sse(
        {"type": "message_start", "message": {"model": "m-1", "usage": {"input_tokens": 7}}},
        {"type": "content_block_delta", "delta": {"text": "hello"}},
        {"type": "message_delta", "usage": {"output_tokens": 3}},
    )
)  # fmt: skip
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def test_each_event_arrives_when_it_is_sent_not_when_the_answer_ends():
    go_on = asyncio.Event()

    async def answer(seen, writer):
        writer.write(HEAD + chunk(b"data: 1\n\n"))
        await go_on.wait()
        writer.write(chunk(b"data: 2\n\n") + b"0\r\n\r\n")

    async with (
        standing(answer) as stand,
        stand.client() as client,
        client.stream("POST", "/v1/messages", headers=HEADERS, content=b"{}") as response,
    ):
        pieces = response.aiter_raw()
        assert await anext(pieces) == b"data: 1\n\n"
        go_on.set()
        assert [piece async for piece in pieces] == [b"data: 2\n\n"]


async def test_the_bytes_are_identical_and_the_call_is_metered():
    pieces = [STREAM[start : start + 7] for start in range(0, len(STREAM), 7)]
    answer = chunked(*pieces, headers=("content-type: text/event-stream",))
    async with standing(saying(answer)) as stand:
        response = await stand.post(json={"model": "m"})
        assert response.content == STREAM
        record = await stand.record()
        assert (record.model_asked, record.model_answered) == ("m", "m-1")
        assert record.usage == Usage(input_tokens=7, output_tokens=3)
        assert record.raw_usage == {"input_tokens": 7, "output_tokens": 3}
        assert (record.bytes_in, record.bytes_out) == (13, len(STREAM))
        assert record.completed
        assert record.started_at <= record.first_byte_at <= record.ended_at
        ledger = stand.ledger
        assert (ledger.relayed, ledger.completed, ledger.in_flight, ledger.refused) == (1, 1, 0, 0)


async def test_a_compressed_answer_passes_as_it_is_and_is_metered():
    import zstandard

    packed = zstandard.compress(STREAM)
    answer = plain(packed, "content-type: text/event-stream", "content-encoding: zstd")
    async with standing(saying(answer)) as stand, stand.client() as client:
        async with client.stream(
            "POST", "/v1/messages", headers=HEADERS, content=b"{}"
        ) as response:
            assert b"".join([piece async for piece in response.aiter_raw()]) == packed
        assert (await stand.record()).usage == Usage(input_tokens=7, output_tokens=3)


CUTS = {
    "chunked, between chunks": HEAD + chunk(STREAM),
    "chunked, in a chunk": HEAD + b"fff\r\n" + STREAM,
    "chunked, in the terminator": HEAD + chunk(STREAM) + b"0\r\n",
    "a body of known length": plain(STREAM + b"more")[:-4],
    "garbage for a chunk size": HEAD + chunk(STREAM) + b"zz\r\n",
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS.keys())
async def test_an_answer_that_is_cut_never_ends_cleanly(cut):
    async with standing(saying_and_closing(cut)) as stand:
        with pytest.raises(httpx.RemoteProtocolError):
            await stand.post(json={})
        record = await stand.record()
        assert not record.completed
        assert record.error
        assert record.status == 200
        answer = await stand.raw(request())
        assert STREAM in answer
        assert not answer.endswith(b"0\r\n\r\n")


async def test_an_answer_that_ends_with_its_connection_ends_cleanly():
    body = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + STREAM
    async with standing(saying_and_closing(body)) as stand:
        response = await stand.post(json={})
        assert response.content == STREAM
        assert (await stand.record()).completed


async def test_silence_before_the_answer_is_a_504_in_the_callers_protocol():
    async def answer(seen, writer):
        await asyncio.sleep(60)

    async with standing(answer, idle_timeout_s=0.05) as stand:
        response = await stand.post(json={})
        assert response.status_code == 504
        assert response.json()["error"]["type"] == "timeout_error"
        assert "silent for 0.05 s" in (await stand.record()).error


async def test_silence_in_the_answer_cuts_it_but_a_slow_answer_does_not():
    async def answer(seen, writer):
        writer.write(HEAD)
        for _ in range(6):  # longer than the timeout in all, never silent for so long
            writer.write(chunk(b"data: 1\n\n"))
            await writer.drain()
            await asyncio.sleep(0.05)
        await asyncio.sleep(60)

    async with standing(answer, idle_timeout_s=0.15) as stand:
        with pytest.raises(httpx.RemoteProtocolError):
            await stand.post(json={})
        record = await stand.record()
        assert record.bytes_out == 6 * 9
        assert "silent" in record.error


async def test_an_unreachable_provider_is_a_502_that_says_why():
    async with standing(saying(b"")) as stand:
        stand.app.client.endpoint = relay.Endpoint("http", "127.0.0.1", free_port())
        response = await stand.post(json={"model": "m"})
        assert response.status_code == 502
        assert response.json()["type"] == "error"
        assert "refused" in response.json()["error"]["message"]
        record = await stand.record()
        assert (record.status, record.completed, record.refusal) == (502, False, "")
        assert "refused" in record.error
        assert KEY not in repr(record) + response.text


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"hello\r\n\r\n",
        b"HTTP/1.1 200",
        b"HTTP/1.1 999 Odd\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nx: a\x00b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 300 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 300_000,
        b"HTTP/1.1 100 Continue\r\nx: 1\r\n\r\n" * 20_000,
    ],
)
async def test_an_answer_that_is_no_http_is_a_502(garbage):
    async with standing(saying_and_closing(garbage)) as stand:
        response = await stand.post(json={})
        assert response.status_code == 502
        assert response.json()["error"]["type"] == "api_error"


async def test_errors_of_the_provider_pass_unchanged_and_complete_nothing():
    body = b'{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}'
    answer = plain(body, "retry-after: 3", status="429 Too Many Requests")
    async with standing(saying(answer)) as stand:
        response = await stand.post(json={})
        assert (response.status_code, response.content) == (429, body)
        assert response.headers["retry-after"] == "3"
        assert not (await stand.record()).completed
        assert stand.ledger.completed == 0


async def test_a_list_of_models_completes_no_model_call():
    async with standing(saying(plain(b'{"data":[]}'))) as stand, stand.client() as client:
        assert (await client.get("/v1/models", headers=HEADERS)).json() == {"data": []}
        record = await stand.record()
        assert (record.protocol, record.completed, record.usage) == (None, False, None)


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
async def test_answers_without_a_body_have_none(status):
    answer = f"HTTP/1.1 {status}\r\ncontent-length: 5\r\nx-a: b\r\n\r\n".encode()
    async with standing(saying(answer)) as stand, stand.client() as client:
        for _ in range(2):
            response = await client.post("/v1/messages", headers=HEADERS, content=b"{}")
            assert (response.status_code, response.content) == (int(status[:3]), b"")
            assert not {"transfer-encoding", "content-length"} & set(response.headers)
        assert all(record.error == "" for record in stand.records)
        assert stand.provider.connections == 1


async def when_gone(stand: Stand) -> relay.CallRecord:
    async with asyncio.timeout(2):
        await stand.provider.gone.wait()
    return await stand.record()


@pytest.mark.parametrize("moment", ["before the head", "in the answer"])
async def test_when_the_client_leaves_the_provider_is_let_go_and_the_call_is_recorded(moment):
    async def answer(seen, writer):
        if moment == "in the answer":
            writer.write(HEAD + chunk(STREAM))
            await writer.drain()
        await asyncio.sleep(0)

    async with standing(answer) as stand:
        reader, writer = await stand.connect()
        writer.write(request())
        await stand.provider.asked.wait()
        if moment == "in the answer":
            await reader.readuntil(b"message_delta")
        writer.close()
        record = await when_gone(stand)
        assert "client left" in record.error
        assert not record.completed
        assert record.status == (200 if moment == "in the answer" else None)
        if moment == "in the answer":
            assert record.usage == Usage(input_tokens=7, output_tokens=3)
        assert stand.ledger.in_flight == 0


async def test_a_client_that_leaves_in_its_request_reaches_nobody():
    async with standing(saying(plain(b"{}"))) as stand:
        _, writer = await stand.connect()
        writer.write(request(body=b"x" * 100)[:-1])
        await writer.drain()
        writer.close()
        record = await stand.record()
        assert (record.status, stand.provider.seen) == (None, [])


async def test_a_slow_client_holds_the_provider_back():
    sent = 0

    async def answer(seen, writer):
        nonlocal sent
        writer.write(HEAD)
        for _ in range(400):
            writer.write(chunk(b"x" * 100_000))
            sent += 100_000
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async with standing(answer) as stand:
        reader, writer = await stand.connect()
        writer.write(request())
        await reader.readuntil(b"\r\n\r\n")
        before = -1
        while sent != before:  # until it stands still
            before = sent
            await asyncio.sleep(0.15)
        assert 0 < sent < 15_000_000
        received = len(await reader.read())
        assert sent == 40_000_000
        assert received > sent
        writer.close()
        assert (await stand.record()).bytes_out == sent


async def test_one_connection_to_the_provider_serves_many_calls():
    async with standing(saying(plain(b"{}"))) as stand:
        for _ in range(10):
            assert (await stand.post(json={})).status_code == 200
        assert stand.provider.connections == 1


async def test_calls_are_parallel():
    everyone = asyncio.Event()

    async def answer(seen, writer):
        if len(stand.provider.seen) == 20:
            everyone.set()
        await everyone.wait()  # none is answered before all have come
        writer.write(plain(b"{}"))

    async with standing(answer) as stand, asyncio.timeout(20):
        answers = await asyncio.gather(*(stand.post(json={}) for _ in range(20)))
        assert [response.status_code for response in answers] == [200] * 20
        assert stand.provider.connections == 20
        await stand.record(20)
        assert sorted(record.sequence for record in stand.records) == list(range(1, 21))


async def test_large_bodies_pass_both_ways():
    body = bytes(range(256)) * 20_000

    async def answer(seen, writer):
        writer.write(plain(seen.body))

    async with standing(answer) as stand:
        response = await stand.post(content=body)
        assert response.content == body


async def test_a_listener_that_fails_breaks_no_call(caplog):
    async with standing(saying(plain(b"{}"))) as stand:

        def fail(record):
            raise LookupError("disk full")

        stand.ledger.on_call = fail
        assert (await stand.post(json={})).status_code == 200
        assert (await stand.post(json={})).status_code == 200
        assert "listener failed" in caplog.text


async def test_nothing_secret_shows_when_a_call_fails(caplog):
    async with standing(saying_and_closing(b"garbage")) as stand:
        response = await stand.post(json={})
        assert response.status_code == 502
        shown = caplog.text + repr(stand.records) + repr(stand.app.policy) + response.text
        assert KEY not in shown
        assert TOKEN not in shown
