"""The server towards the agent, and the sockets it listens on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import time

import pytest

import relay.server
from relay import bind_unix, serving
from relay.server import MAX_HEAD_BYTES, MAX_HEADERS
from relay.sockets import SocketPathTooLong, connected_unix, unix_address
from tests.pace import stretched
from tests.relay.stand import OK, TOKEN, plain, request, standing

pytestmark = pytest.mark.anyio


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def test_a_socket_can_be_bound_and_reached_at_any_depth(tmp_path):
    path = tmp_path.joinpath(*["deep" * 12] * 6) / "relay.sock"
    path.parent.mkdir(parents=True)
    assert len(str(path)) > 250
    with bind_unix(path) as bound:
        bound.listen()
        with connected_unix(path) as client:
            bound.setblocking(True)
            served, _ = bound.accept()
            with served:
                client.sendall(b"hi")
                assert served.recv(2) == b"hi"


@pytest.mark.parametrize("mode", [0o600, 0o660])
def test_the_socket_file_has_its_mode_whatever_the_umask(tmp_path, mode):
    before = os.umask(0o077)
    try:
        with bind_unix(tmp_path / "r.sock", mode):
            assert stat.S_IMODE((tmp_path / "r.sock").stat().st_mode) == mode
    finally:
        os.umask(before)


def test_a_socket_never_replaces_what_is_there(tmp_path):
    (tmp_path / "r.sock").write_text("mine")
    with pytest.raises(OSError, match="in use"):
        bind_unix(tmp_path / "r.sock")
    assert (tmp_path / "r.sock").read_text() == "mine"


def test_where_the_length_counts_a_long_path_is_refused_clearly(tmp_path, monkeypatch):
    monkeypatch.setattr("relay.sockets._DESCRIPTORS", tmp_path / "no-such")
    with pytest.raises(SocketPathTooLong, match="shorter"), unix_address("/x" * 100):
        pass


def test_no_descriptor_is_left_open_by_a_long_path(tmp_path):
    path = tmp_path / ("d" * 120) / "r.sock"
    path.parent.mkdir()
    before = descriptors()
    with bind_unix(path):
        assert descriptors() == before + 1
    assert descriptors() == before


@pytest.mark.parametrize("state", ["idle connections", "a call in flight", "a slow client"])
async def test_stopping_takes_no_time_and_leaves_every_call_recorded(state):
    async def answer(seen, writer):
        if state == "a slow client":
            writer.write(plain(b"x" * 20_000_000))
            return
        if state == "a call in flight":
            await asyncio.sleep(60)
        writer.write(plain(b"{}"))

    times = []
    for _ in range(3):  # the best of three: the machine may be busy
        async with standing(answer) as stand:
            reader, writer = await stand.connect()
            writer.write(request(close=False))
            await stand.provider.asked.wait()
            if state == "a slow client":
                await asyncio.sleep(0.05)
            if state == "idle connections":
                await reader.readuntil(b"{}")
        times.append(stand.stopped_in)
        assert stand.ledger.in_flight == 0
        record = await stand.record()
        assert record.ended_at is not None
        assert record.completed is (state == "idle connections")
        assert bool(record.error) is (state != "idle connections")
        writer.close()
    assert min(times) < 0.1


async def test_starting_takes_no_time(tmp_path):
    async def app(scope, receive, send):
        raise AssertionError

    started = time.monotonic()
    async with serving(app, bind_unix(tmp_path / "a")):
        pass
    assert time.monotonic() - started < stretched(0.2)


async def test_signals_stay_with_the_owner_of_the_process(tmp_path):
    import signal

    async def app(scope, receive, send):
        raise AssertionError

    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    async with serving(app, bind_unix(tmp_path / "a")):
        assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


async def test_http_1_0_is_refused():
    async with standing(OK) as stand:
        answer = await stand.raw(request().replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert answer.startswith(b"HTTP/1.1 505 ")
        assert stand.provider.seen == []


HEADS = {
    "a long header": b"x: " + b"y" * MAX_HEAD_BYTES + b"\r\n",
    "a header without end": b"x: " + b"y" * 2_000_000,
    "many headers": b"x: y\r\n" * (MAX_HEADERS + 1),
    "a long name": b"x" * MAX_HEAD_BYTES + b": y\r\n",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())
async def test_a_request_head_has_limits(head):
    async with standing(OK) as stand:
        answer = await stand.raw(request(close=False)[:-4] + head + b"\r\n")
        assert answer.startswith(b"HTTP/1.1 431 ")
        assert stand.provider.seen == []


async def test_a_long_target_is_refused():
    async with standing(OK) as stand:
        answer = await stand.raw(request("/" + "a" * MAX_HEAD_BYTES))
        assert answer.startswith(b"HTTP/1.1 431 ")


async def test_a_head_that_trickles_in_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(relay.server, "HEAD_TIME_S", 0.1)
    async with standing(OK) as stand:
        reader, writer = await stand.connect()
        writer.write(b"POST /v1/messages HTTP/1.1\r\n")

        async def trickle():
            while True:
                writer.write(b"x: y\r\n")
                await asyncio.sleep(0.02)

        task = asyncio.create_task(trickle())
        async with asyncio.timeout(2):
            assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        task.cancel()
        writer.close()


@pytest.mark.parametrize(
    "sent",
    [b"\x16\x03\x01\x02\x00", b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET\r\n\r\n"],
)
async def test_what_is_no_http_gets_a_400_and_the_door(sent):
    async with standing(OK) as stand:
        assert (await stand.raw(sent)).startswith(b"HTTP/1.1 4")
        assert stand.records == []


async def test_a_body_that_turns_out_malformed_is_a_400_and_a_recorded_call():
    async with standing(OK) as stand:
        head = request(body=b"", close=False)[:-2] + b"transfer-encoding: chunked\r\n\r\n"
        answer = await stand.raw(head + b"5\r\nhello\r\nnonsense\r\n")
        assert answer.startswith(b"HTTP/1.1 400 ")
        record = await stand.record()
        assert record.error
        assert stand.provider.seen == []


async def test_a_chunked_request_arrives_with_its_length():
    async with standing(OK) as stand:
        head = request(body=b"", close=False)[:-2]
        body = (
            b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\nx-trailer: 1\r\n\r\n"
        )
        reader, writer = await stand.connect()
        writer.write(head + body)
        assert (await reader.readuntil(b"{}")).startswith(b"HTTP/1.1 200 ")
        writer.close()
        seen = stand.provider.seen[0]
        assert (seen.body, seen.values("content-length")) == (b"hello!", ["6"])
        assert seen.values("x-trailer") == []


async def test_pipelined_requests_are_answered_in_order():
    async with standing(OK) as stand:
        both = request(close=False) + request("/v1/files", b"", close=True)
        answer = await stand.raw(both)
        assert answer.index(b"HTTP/1.1 200") < answer.index(b"HTTP/1.1 403")


async def test_a_client_that_pipelines_and_leaves_is_noticed():
    async def answer(seen, writer):
        await asyncio.sleep(60)

    async with standing(answer) as stand:
        _, writer = await stand.connect()
        writer.write(request(close=False) * 2)
        await stand.provider.asked.wait()
        writer.transport.abort()
        # The waiting request holds reading back, so the end shows when the relay is stopped.
    assert all(record.ended_at for record in stand.records)
    assert stand.ledger.in_flight == 0


async def test_many_connections_at_once_are_all_served():
    async with standing(OK) as stand:
        clients = [await stand.connect() for _ in range(300)]
        for _, writer in clients:
            writer.write(request())
        answers = await asyncio.gather(*(reader.read() for reader, _ in clients))
        assert all(answer.startswith(b"HTTP/1.1 200 ") for answer in answers)
        for _, writer in clients:
            writer.close()


async def test_a_flood_of_connections_pushes_out_the_one_unused_the_longest(monkeypatch):
    monkeypatch.setattr(relay.server, "MAX_CONNECTIONS", 5)
    async with standing(OK) as stand:
        clients = []
        for _ in range(8):
            clients.append(await stand.connect())
            await asyncio.sleep(0.01)
        for reader, writer in clients[:3]:
            assert await reader.read() == b""
            writer.close()
        for reader, writer in clients[3:]:
            writer.write(request())
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
            writer.close()


async def test_a_call_in_flight_is_never_pushed_out(monkeypatch):
    monkeypatch.setattr(relay.server, "MAX_CONNECTIONS", 3)
    let_go, all_in = asyncio.Event(), asyncio.Event()

    async def answer(seen, writer):
        if stand.ledger.in_flight == 3:
            all_in.set()
        await let_go.wait()
        writer.write(plain(b"ok"))

    async with standing(answer) as stand:
        busy = [await stand.connect() for _ in range(3)]
        for _, writer in busy:
            writer.write(request())
        await all_in.wait()
        reader, writer = await stand.connect()
        assert await reader.read() == b""  # nobody can make room for it
        writer.close()
        let_go.set()
        for reader, writer in busy:
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
            writer.close()


async def test_a_refused_body_is_discarded_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(relay.server, "MAX_DISCARDED_BYTES", 1_000_000)
    async with standing(OK, max_body_bytes=10) as stand:
        reader, writer = await stand.connect()
        writer.write(request(body=b"", close=False)[:-2] + b"content-length: 9000000\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(900):
                writer.write(b"x" * 10_000)
                await writer.drain()
        with contextlib.suppress(ConnectionError):
            assert (await reader.read()).startswith(b"HTTP/1.1 413")
        writer.close()


@pytest.mark.parametrize("over", ["tcp", "unix"])
async def test_a_refusal_reaches_a_client_that_still_sends_after_its_100_continue(over, tmp_path):
    """Closed at once with unread bytes, the connection was reset, and the answer went with it."""
    policy = relay.Policy(relay.get_provider("anthropic"), max_body_bytes=1000)
    app = relay.create_app(policy, relay.Credential("k"), TOKEN, relay.Ledger())
    path = tmp_path / "a"
    bound = bind_unix(path) if over == "unix" else socket.create_server(("127.0.0.1", 0))
    head = request(body=b"", close=False)[:-2]
    head += b"transfer-encoding: chunked\r\nexpect: 100-continue\r\n\r\n"
    async with serving(app, bound):
        for _ in range(5):
            if over == "unix":
                reader, writer = await asyncio.open_unix_connection(str(path))
            else:
                reader, writer = await asyncio.open_connection(*bound.getsockname())
            writer.write(head)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
            for _ in range(40):
                writer.write(b"c350\r\n" + b"x" * 50_000 + b"\r\n")
                await writer.drain()
            assert (await reader.read()).startswith(b"HTTP/1.1 413 ")
            writer.close()


@pytest.mark.parametrize("bound", [("LINGER_S", 0.2), ("MAX_DISCARDED_BYTES", 300)])
async def test_a_refused_client_that_never_stops_sending_is_cut_off(monkeypatch, bound):
    monkeypatch.setattr(relay.server, "LINGER_S", 60)
    monkeypatch.setattr(relay.server, *bound)
    async with standing(OK, max_body_bytes=10) as stand:
        _, writer = await stand.connect()
        head = request(body=b"", close=False)[:-2]
        writer.write(head + b"transfer-encoding: chunked\r\nexpect: 100-continue\r\n\r\n")

        async def send_on():
            while True:
                writer.write(b"10\r\n" + b"x" * 16 + b"\r\n")
                await writer.drain()
                await asyncio.sleep(0.01)

        with pytest.raises(ConnectionError):
            await asyncio.wait_for(send_on(), 5)
        writer.close()


async def test_it_serves_tcp_as_well():
    bound = socket.create_server(("127.0.0.1", 0))
    port = bound.getsockname()[1]

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": scope["raw_target"]})

    async with serving(app, bound):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /%41?x HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        assert b"/%41?x" in await reader.read()
        writer.close()


async def test_a_malformed_request_behind_one_that_expects_a_100_gets_one_answer():
    async with standing(OK) as stand:
        first = request(body=b"", close=False)[:-2] + b"content-length: 0\r\n"
        second = first + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n"
        answer = await stand.raw(first + b"expect: 100-continue\r\n\r\n" + second)
        await asyncio.sleep(0.02)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1") == 1
        assert (await stand.raw(request())).startswith(b"HTTP/1.1 200 ")


async def test_a_fault_of_the_application_is_logged_and_answered(tmp_path, caplog):
    async def app(scope, receive, send):
        raise LookupError("a bug")

    async with serving(app, bind_unix(tmp_path / "a")):
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "a"))
        writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 500")
        writer.close()
    assert "a bug" in caplog.text
