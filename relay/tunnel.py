"""One tunnel of the egress door: its request, the judgement, the bytes both ways, its record."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

from relay.client_hello import UnreadableHello, names_asked_for
from relay.connection import os_words
from relay.destinations import EgressRules, flag_for, read_host_port

MAX_HEAD_BYTES = 16 * 1024
_PIECE = 64 * 1024
_FAREWELL_S = 1.0  # for a refused client to take its answer

_CONNECT = re.compile(rb"CONNECT ([\x21-\x7e]+) HTTP/1\.[01]")
_OTHER = re.compile(rb"[A-Z]{1,20} (?:http://([^/?#@\s]+))?\S* HTTP/1\.[01]")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t\x20-\x7e\x80-\xff]*")

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class EgressAttempt:
    """One use of the door, let through or not. Times are epoch seconds."""

    sequence: int
    started_at: float
    host: str = ""  # empty: the request could not be read
    port: int = 0
    address: str = ""  # what was connected to
    allowed: bool = False
    listed: bool = False  # whether the list names it; in warn mode others pass too
    reason: str = ""  # why it was refused, or how it failed
    flag: str = ""  # what would allow it: --allow-host HOST:PORT
    bytes_out: int = 0  # from the container
    bytes_in: int = 0  # to the container
    ended_at: float | None = None

    @property
    def duration_s(self) -> float:
        return (self.ended_at or time.time()) - self.started_at


@dataclass(frozen=True, slots=True)
class EgressLimits:
    """Times are seconds."""

    max_tunnels: int = 256
    head_time_s: float = 15.0  # for a request head, and for a TLS greeting once it has begun
    connect_timeout_s: float = 10.0  # look-up and connection together
    idle_timeout_s: float = 300.0  # silence in both directions


class Refused(Exception):
    """An attempt that does not pass. `allowed` tells a failure from a refusal."""

    def __init__(self, status: HTTPStatus, reason: str, *, allowed: bool = False) -> None:
        super().__init__(reason)
        self.status = status
        self.allowed = allowed


class Door(Protocol):
    """What a tunnel needs of the door it came through."""

    rules: EgressRules
    limits: EgressLimits

    @property
    def is_full(self) -> bool: ...

    def begin(self) -> EgressAttempt: ...

    def file(self, attempt: EgressAttempt) -> None: ...

    async def resolve(self, host: str, port: int) -> list[str]:
        """The addresses of a name. Raises OSError or UnicodeError."""

    async def provider_addresses(self) -> frozenset[str]: ...


class Tunnel:
    """One connection to the door, from its first byte to its record."""

    def __init__(
        self, door: Door, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._door = door
        self._rules = door.rules
        self._limits = door.limits
        self._reader = reader
        self._writer = writer
        self._attempt = door.begin()
        self._opened = False
        self._finished: list[asyncio.StreamWriter] = []

    async def run(self) -> None:
        attempt = self._attempt
        try:
            await self._carry()
        except Refused as refused:
            attempt.allowed = refused.allowed
            attempt.reason = str(refused)
            if not self._opened:
                await self._say_no(refused)
        except OSError as error:
            attempt.reason = f"the connection broke: {os_words(error)}"
        except asyncio.IncompleteReadError as error:
            if not error.partial:
                return  # it came and went without a word: nobody wanted anything
            attempt.reason = "the request stopped in the middle"
        except asyncio.CancelledError:
            if attempt.host and not attempt.reason:
                attempt.reason = "the run ended"
            raise
        except Exception:  # noqa: BLE001
            attempt.reason = "the egress door failed"
            _log.exception("a tunnel failed in a way that was not foreseen")
        finally:
            self._cut(self._writer)
            if attempt.host or attempt.reason:
                self._door.file(attempt)

    async def _carry(self) -> None:
        if self._door.is_full:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many tunnels at one time")
        await self._read_head()
        self._judge_name()
        addresses = await self._addresses()
        self._attempt.allowed = True
        reader, writer = await self._connect(addresses)
        try:
            self._writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            self._opened = True
            await self._both_ways(reader, writer)
        finally:
            self._cut(writer)

    # -- judging -----------------------------------------------------------------------------------
    async def _read_head(self) -> None:
        seconds = self._limits.head_time_s
        try:
            async with asyncio.timeout(seconds):
                head = await self._reader.readuntil(b"\r\n\r\n")
        except TimeoutError:
            raise Refused(
                HTTPStatus.REQUEST_TIMEOUT, f"no request head within {seconds:g} s"
            ) from None
        except asyncio.LimitOverrunError:
            raise Refused(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"a request head may have {MAX_HEAD_BYTES} bytes",
            ) from None
        line, *fields = head[:-4].split(b"\r\n")
        match = _CONNECT.fullmatch(line)
        if match is None:
            self._refuse_other(line)
            return
        names = [found[1].lower() for found in map(_FIELD.fullmatch, fields) if found]
        found = read_host_port(match[1].decode("ascii"))
        if len(names) != len(fields) or found is None or b"transfer-encoding" in names:
            raise Refused(HTTPStatus.BAD_REQUEST, "this is no valid CONNECT request")
        self._attempt.host, self._attempt.port = found

    def _refuse_other(self, line: bytes) -> None:
        match = _OTHER.fullmatch(line)
        if match is None:
            raise Refused(HTTPStatus.BAD_REQUEST, "this is no valid CONNECT request")
        found = read_host_port((match[1] or b"").decode("latin-1"), 80)
        if found is not None:
            self._attempt.host, self._attempt.port = found
        raise Refused(
            HTTPStatus.METHOD_NOT_ALLOWED, "this door takes CONNECT only: use https, not http"
        )

    def _judge_name(self) -> None:
        attempt, rules = self._attempt, self._rules
        host, port = attempt.host, attempt.port
        if rules.is_provider(host):
            raise Refused(HTTPStatus.FORBIDDEN, "the model provider is reached by the relay alone")
        attempt.listed = rules.lists(host, port)
        if attempt.listed:
            return
        attempt.flag = flag_for(host, port)
        attempt.reason = "not on the list"
        if rules.mode == "refuse":
            never = "private addresses are never reachable"
            raise Refused(HTTPStatus.FORBIDDEN, attempt.reason if attempt.flag else never)

    async def _addresses(self) -> list[str]:
        """The addresses of the host, when every one of them may be connected to."""
        attempt, door = self._attempt, self._door
        seconds = self._limits.connect_timeout_s
        try:
            async with asyncio.timeout(seconds):
                addresses = await door.resolve(attempt.host, attempt.port)
                of_provider = await door.provider_addresses()
        except TimeoutError:
            raise _failed(f"the name did not resolve within {seconds:g} s") from None
        except (OSError, UnicodeError):
            raise _failed("the name does not resolve") from None
        for address in addresses:
            if not self._rules.is_reachable(address, attempt.port):
                attempt.flag = ""
                raise Refused(
                    HTTPStatus.FORBIDDEN,
                    f"it resolves to {address}, and private addresses are never reachable",
                )
            if address in of_provider:
                attempt.flag = ""
                raise Refused(
                    HTTPStatus.FORBIDDEN,
                    "it resolves to the model provider, which is reached by the relay alone",
                )
        return addresses

    async def _connect(
        self, addresses: list[str]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        seconds = self._limits.connect_timeout_s
        failure = _failed("the name has no address")
        try:
            async with asyncio.timeout(seconds):
                for address in addresses:
                    try:
                        # An address is not looked up again: what was judged is what is connected.
                        streams = await asyncio.open_connection(
                            address, self._attempt.port, limit=_PIECE
                        )
                    except OSError as error:
                        failure = _failed(f"no connection: {os_words(error)}")
                    else:
                        self._attempt.address = address
                        return streams
        except TimeoutError:
            raise _failed(f"no connection within {seconds:g} s") from None
        raise failure

    # -- carrying ----------------------------------------------------------------------------------
    async def _both_ways(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        seconds = self._limits.idle_timeout_s
        try:
            async with asyncio.timeout(seconds) as idle:

                def moved() -> None:
                    idle.reschedule(loop.time() + seconds)

                try:
                    async with asyncio.TaskGroup() as directions:
                        directions.create_task(self._outward(writer, moved))
                        directions.create_task(self._inward(reader, moved))
                except ExceptionGroup as failed:
                    raise failed.exceptions[0] from None
                await self._finish(writer)
                await self._finish(self._writer)
        except TimeoutError:
            self._attempt.reason = f"nothing moved for {seconds:g} s"

    async def _outward(self, writer: asyncio.StreamWriter, moved: Callable[[], None]) -> None:
        piece = await self._greeting()
        while piece:
            self._attempt.bytes_out += len(piece)
            writer.write(piece)
            moved()
            await writer.drain()
            piece = await self._reader.read(_PIECE)
        writer.write_eof()

    async def _inward(self, reader: asyncio.StreamReader, moved: Callable[[], None]) -> None:
        while piece := await reader.read(_PIECE):
            self._attempt.bytes_in += len(piece)
            self._writer.write(piece)
            moved()
            await self._writer.drain()
        self._writer.write_eof()

    async def _greeting(self) -> bytes:
        """The client's first bytes, judged. A protocol whose server speaks first has time."""
        data = await self._reader.read(_PIECE)
        try:
            async with asyncio.timeout(self._limits.head_time_s):
                while (names := names_asked_for(data)) is None and data:
                    piece = await self._reader.read(_PIECE)
                    if not piece:
                        raise Refused(HTTPStatus.FORBIDDEN, "its TLS greeting stopped half-way")
                    data += piece
        except TimeoutError:
            raise Refused(HTTPStatus.FORBIDDEN, "its TLS greeting did not come whole") from None
        except UnreadableHello as error:
            raise Refused(HTTPStatus.FORBIDDEN, str(error)) from None
        for name in names or ():
            self._judge_greeting(name)
        return data

    def _judge_greeting(self, name: str) -> None:
        attempt, rules = self._attempt, self._rules
        if name == attempt.host:
            return
        shown = name[:253].encode("ascii", "replace").decode()
        if rules.is_provider(name) or rules.mode == "refuse":
            raise Refused(
                HTTPStatus.FORBIDDEN, f"inside the tunnel TLS asked for another host, {shown!r}"
            )
        attempt.reason = f"inside the tunnel TLS asked for another host, {shown!r}"

    async def _finish(self, writer: asyncio.StreamWriter) -> None:
        """Close a side once what is left for it has been sent."""
        writer.close()
        await writer.wait_closed()
        self._finished.append(writer)

    def _cut(self, writer: asyncio.StreamWriter) -> None:
        # asyncio fails when it is told to abort a transport that has ended well.
        if writer not in self._finished:
            writer.transport.abort()

    async def _say_no(self, refused: Refused) -> None:
        attempt = self._attempt
        hint = f"; {attempt.flag} would allow it" if attempt.flag else ""
        text = f"{attempt.reason}{hint}"
        allow = b"allow: CONNECT\r\n" if refused.status == HTTPStatus.METHOD_NOT_ALLOWED else b""
        # Most clients show the reason phrase of a refused CONNECT and nothing else.
        head = f"HTTP/1.1 {refused.status} sanduk: {text}\r\n".encode("ascii", "replace")
        body = f"{text}\n".encode("ascii", "replace")
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_FAREWELL_S):
                self._writer.write(
                    b"%bcontent-type: text/plain\r\ncontent-length: %d\r\n%bconnection: close"
                    b"\r\n\r\n%b" % (head, len(body), allow, body)
                )
                await self._finish(self._writer)


def _failed(reason: str) -> Refused:
    """The way was free, but nobody is there."""
    return Refused(HTTPStatus.BAD_GATEWAY, reason, allowed=True)
