"""A relay on a real unix socket in front of a scripted provider on a real loopback port."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx

import relay
from relay.sockets import connected_unix

TOKEN = "run-token-1"
KEY = "sk-the-real-key"


@dataclasses.dataclass
class Seen:
    """A request as the provider got it."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: int

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name]


Answer = Callable[[Seen, asyncio.StreamWriter], Awaitable[bool | None]]


def plain(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def chunked(*pieces: bytes, headers: tuple[str, ...] = (), end: bytes = b"0\r\n\r\n") -> bytes:
    lines = ["HTTP/1.1 200 OK", "transfer-encoding: chunked", *headers, "", ""]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return "\r\n".join(lines).encode() + chunks + end


def saying(data: bytes) -> Answer:
    """Answer every request with these bytes, and keep the connection."""

    async def answer(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return answer


OK = saying(plain(b"{}"))


def saying_and_closing(data: bytes) -> Answer:
    async def answer(seen: Seen, writer: asyncio.StreamWriter) -> bool:
        writer.write(data)
        return True

    return answer


class Provider:
    """A provider that reads requests strictly and answers by script."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.seen: list[Seen] = []
        self.connections = 0
        self.asked = asyncio.Event()
        self.gone = asyncio.Event()  # a connection ended
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def running(self, **tls: Any) -> AsyncIterator[Provider]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, **tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.connections += 1
        number = self.connections
        try:
            while True:
                seen = await self._read(reader, number)
                self.seen.append(seen)
                self.asked.set()
                if await self.answer(seen, writer):
                    break
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self.gone.set()
            writer.close()
            with contextlib.suppress(Exception):
                await writer.wait_closed()

    async def _read(self, reader: asyncio.StreamReader, number: int) -> Seen:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *rest = head[:-4].split("\r\n")
        method, target, version = line.split(" ")
        assert version == "HTTP/1.1"
        headers = [(key, value.strip()) for key, value in (h.split(":", 1) for h in rest)]
        length = [int(value) for key, value in headers if key.lower() == "content-length"]
        assert len(length) <= 1
        body = await reader.readexactly(length[0]) if length else b""
        return Seen(method, target, headers, body, number)


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def listening(handler: Handler, **options: Any) -> AsyncIterator[int]:
    """A server on a loopback port whose connections are served by `handler` alone."""
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await handler(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, **options)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)


async def joined(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    inner_reader: asyncio.StreamReader,
    inner_writer: asyncio.StreamWriter,
) -> None:
    """Carry bytes between two connections until both sides have said everything."""

    async def carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while piece := await source.read(65536):
                sink.write(piece)
                await sink.drain()
        sink.close()

    try:
        await asyncio.gather(carry(reader, inner_writer), carry(inner_reader, writer))
    finally:
        inner_writer.transport.abort()
        await asyncio.sleep(0)


class Stand:
    """What a test talks to."""

    def __init__(self, path: Path, provider: Provider) -> None:
        self.path = path
        self.provider = provider
        self.records: list[relay.CallRecord] = []
        self.ledger = relay.Ledger(on_call=self._file)
        self._filed = asyncio.Event()
        self.app: Any = None
        self.stopped_in = 0.0  # seconds its stop took

    def _file(self, record: relay.CallRecord) -> None:
        self.records.append(record)
        self._filed.set()

    def client(self, **options: Any) -> httpx.AsyncClient:
        transport = httpx.AsyncHTTPTransport(uds=str(self.path))
        return httpx.AsyncClient(transport=transport, base_url="http://relay", **options)

    async def post(self, path: str = "/v1/messages", **options: Any) -> httpx.Response:
        headers = {"x-api-key": TOKEN, "authorization": f"Bearer {TOKEN}"}
        headers.update(options.pop("headers", {}))
        async with self.client() as client:
            return await client.post(path, headers=headers, **options)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_unix_connection(sock=connected_unix(self.path))

    async def raw(self, data: bytes, *, timeout: float = 5.0) -> bytes:
        """Send bytes, half-close nothing, return all that comes until the relay closes."""
        reader, writer = await self.connect()
        try:
            writer.write(data)
            async with asyncio.timeout(timeout):
                return await reader.read()
        finally:
            writer.close()

    async def prod(self, data: bytes, *, patience: float = 0.1) -> bytes:
        """Send bytes and return what comes, until the relay closes or is quiet for a while."""
        reader, writer = await self.connect()
        answer = b""
        try:
            writer.write(data)
            while True:
                async with asyncio.timeout(patience):
                    piece = await reader.read(65536)
                if not piece:
                    return answer
                answer += piece
        except TimeoutError:
            return answer
        finally:
            writer.close()

    async def record(self, number: int = 1) -> relay.CallRecord:
        """The record of the nth call, once it has ended."""
        async with asyncio.timeout(5):
            while len(self.records) < number:
                self._filed.clear()
                await self._filed.wait()
        return self.records[number - 1]


def request(
    target: str = "/v1/messages",
    body: bytes = b"{}",
    *headers: str,
    method: str = "POST",
    host: str = "host: relay",
    close: bool = True,
) -> bytes:
    """A request as bytes, with the token."""
    lines = [f"{method} {target} HTTP/1.1", host, f"x-api-key: {TOKEN}"]
    if body:
        lines.append(f"content-length: {len(body)}")
    if close:
        lines.append("connection: close")
    return "\r\n".join([*lines, *headers, "", ""]).encode("latin-1") + body


def status_of(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer
    return int(answer.split(b" ", 2)[1])


@contextlib.asynccontextmanager
async def standing(
    answer: Answer, provider: str = "anthropic", **limits: Any
) -> AsyncIterator[Stand]:
    scripted = Provider(answer)
    async with scripted.running():
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "relay.sock"
            upstream = relay.Endpoint("http", "127.0.0.1", scripted.port)
            policy = relay.Policy(relay.get_provider(provider), upstream, **limits)
            stand = Stand(path, scripted)
            stand.app = relay.create_app(policy, relay.Credential(KEY), TOKEN, stand.ledger)
            async with relay.serving(stand.app, relay.bind_unix(path)):
                yield stand
                started = time.monotonic()
            stand.stopped_in = time.monotonic() - started


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def sse(
    *events: dict[str, Any], newline: str = "\n", space: str = " ", named: bool = True
) -> bytes:
    lines = []
    for event in events:
        if named and "type" in event:
            lines.append(f"event:{space}{event['type']}{newline}")
        lines.append(f"data:{space}{json.dumps(event)}{newline}{newline}")
    return "".join(lines).encode()
