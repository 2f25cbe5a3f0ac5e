"""The client towards the provider."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import subprocess
import threading
import time

import pytest

import relay.connection
import relay.upstream
from relay.connection import (
    MAX_HEAD_BYTES,
    UpstreamBroken,
    UpstreamError,
    UpstreamSilent,
    UpstreamUnreachable,
)
from relay.endpoints import Endpoint
from relay.sockets import bind_unix
from relay.upstream import UpstreamClient
from tests.relay.stand import (
    Provider,
    chunked,
    free_port,
    listening,
    plain,
    saying,
    saying_and_closing,
)

pytestmark = pytest.mark.anyio
HOST = [(b"host", b"provider")]


@contextlib.asynccontextmanager
async def calling(answer, **timeouts):
    provider = Provider(answer)
    async with provider.running():
        client = UpstreamClient(Endpoint("http", "127.0.0.1", provider.port), **timeouts)
        client.provider = provider
        try:
            yield client
        finally:
            await client.aclose()


async def call(client, body=b"{}", method=b"POST"):
    """Status, headers and body of one call."""
    exchange = client.exchange()
    try:
        await exchange.send(method, b"/v1/messages", HOST, body)
        pieces, more = [], True
        while more:
            piece, more = await exchange.read()
            pieces.append(piece)
        return exchange.status, exchange.headers, b"".join(pieces)
    finally:
        exchange.close()


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


async def test_a_request_is_never_sent_twice():
    async with calling(saying(plain(b"ok"))) as client:
        await call(client)

        async def hang_up(seen, writer):
            return True

        client.provider.answer = hang_up
        with pytest.raises(UpstreamBroken, match="without an answer"):
            await call(client)
        assert len(client.provider.seen) == 2


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


async def test_a_connection_that_hangs_is_unreachable_after_the_connect_timeout():
    # TLS to a server that never answers the handshake.
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        endpoint = Endpoint("https", "127.0.0.1", listening.getsockname()[1])
        client = UpstreamClient(endpoint, connect_timeout_s=0.3)
        started = time.monotonic()
        with pytest.raises(UpstreamUnreachable, match=r"within 0\.3 s"):
            await call(client)
        assert time.monotonic() - started < 3


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


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for `localhost` that only this test trusts."""
    directory = tmp_path_factory.mktemp("tls")
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost "
        "-addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem"
    )
    subprocess.run(command.split(), cwd=directory, check=True, capture_output=True, timeout=60)
    return directory


@contextlib.asynccontextmanager
async def tls_provider(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    provider = Provider(saying(plain(b"ok")))
    async with provider.running(ssl=context):
        yield provider


@pytest.fixture
def fresh_tls_context():
    relay.upstream.tls_context.cache_clear()
    yield
    relay.upstream.tls_context.cache_clear()


@pytest.mark.usefixtures("fresh_tls_context")
async def test_tls_is_verified_against_the_usual_ca_file_and_kept_open(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    async with tls_provider(certificate) as provider:
        client = UpstreamClient(Endpoint("https", "localhost", provider.port))
        for _ in range(5):
            assert (await call(client))[2] == b"ok"
        assert (client.opened, provider.connections) == (1, 1)
        assert relay.upstream.tls_context.cache_info().misses == 1
        await client.aclose()


@pytest.mark.usefixtures("fresh_tls_context")
async def test_a_certificate_nobody_vouches_for_is_refused(certificate):
    async with tls_provider(certificate) as provider:
        client = UpstreamClient(Endpoint("https", "localhost", provider.port))
        with pytest.raises(UpstreamUnreachable, match="not trusted"):
            await call(client)
        assert provider.seen == []


@pytest.mark.usefixtures("fresh_tls_context")
async def test_a_certificate_for_another_name_is_refused(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    async with tls_provider(certificate) as provider:
        client = UpstreamClient(Endpoint("https", "127.0.0.1", provider.port))
        with pytest.raises(UpstreamUnreachable, match="not trusted"):
            await call(client)


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
