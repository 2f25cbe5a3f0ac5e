"""An egress door on loopback: stand-ins behind names that only the test resolves."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
import ssl
import tempfile
from pathlib import Path

from relay.destinations import egress_rules
from relay.egress import EgressLimits, serving_egress
from relay.sockets import bind_unix, connected_unix
from tests.relay.stand import listening

NAME = "files.vendor.test"
PROVIDER = "api.vendor.test"


@dataclasses.dataclass
class Door:
    path: Path
    attempts: list
    looked_up: list
    filed: asyncio.Event

    async def say(self, data: bytes) -> tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter]:
        """Send a request head; the answer's head and the connection."""
        reader, writer = await asyncio.open_unix_connection(sock=connected_unix(self.path))
        writer.write(data)
        try:
            async with asyncio.timeout(5):
                return await reader.readuntil(b"\r\n\r\n"), reader, writer
        except asyncio.IncompleteReadError as error:
            return error.partial, reader, writer

    @contextlib.asynccontextmanager
    async def tunnel(self, authority: str, version: str = "1.1"):
        head = f"CONNECT {authority} HTTP/{version}\r\nhost: {authority}\r\n\r\n"
        answer, reader, writer = await self.say(head.encode("latin-1"))
        try:
            yield answer, reader, writer
        finally:
            writer.transport.abort()
            await asyncio.sleep(0)

    async def refusal(self, authority: str) -> str:
        async with self.tunnel(authority) as (answer, _, _):
            return answer.decode()

    async def tls(self, authority: str, name: str, trusted: Path):
        """A TLS connection inside a tunnel."""
        sock = connected_unix(self.path)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(sock, f"CONNECT {authority} HTTP/1.1\r\n\r\n".encode())
        answer = await loop.sock_recv(sock, 4096)
        assert answer.startswith(b"HTTP/1.1 200 "), answer
        context = ssl.create_default_context(cafile=str(trusted / "cert.pem"))
        return await asyncio.open_connection(sock=sock, ssl=context, server_hostname=name)

    async def attempt(self, number: int = 1):
        async with asyncio.timeout(5):
            while len(self.attempts) < number:
                self.filed.clear()
                await self.filed.wait()
        return self.attempts[number - 1]


@contextlib.asynccontextmanager
async def door(
    *allow,
    names=None,
    resolve=None,
    mode="refuse",
    admit=(),
    provider=PROVIDER,
    listener=None,
    **limits,
):
    """An open door. `names` maps names to addresses; all others do not resolve.

    Or `resolve` looks names up, and what it raises or waits for is its own.
    """
    known = {NAME: ["127.0.0.1"], **(names or {})}
    looked_up, attempts, filed = [], [], asyncio.Event()

    async def look_up(host, port):
        looked_up.append(host)
        if resolve is not None:
            return await resolve(host, port)
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return known[host]

    def file(attempt):
        attempts.append(attempt)
        filed.set()
        if listener is not None:
            listener(attempt)

    rules = egress_rules(allow, mode=mode, provider_host=provider, admit=admit)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "egress.sock"
        async with serving_egress(
            rules, bind_unix(path), file, limits=EgressLimits(**limits), resolve=look_up
        ):
            yield Door(path, attempts, looked_up, filed)


async def echo(reader, writer):
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()


async def greet(reader, writer):
    """A TLS server's application: one line, answered."""
    line = await reader.readline()
    writer.write(b"you said " + line)
    await writer.drain()
    await reader.read()


@contextlib.asynccontextmanager
async def echo_door(handler=echo, **options):
    """An open door with one listed host, whose port is that of `handler`."""
    async with (
        listening(handler) as port,
        door(f"{NAME}:{port}", admit=[f"127.0.0.1:{port}"], **options) as opened,
    ):
        yield opened, port
