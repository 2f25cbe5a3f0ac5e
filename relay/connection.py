"""One connection to the provider: HTTP/1.1 on httptools, one exchange at a time.

The parser is used for what it does well, and made anew for each response: it cannot be told that
a HEAD has no body, and it may keep a trailer for the next message. What it leaves open is done
here: bodies that end with the connection, limits on the head, silence, back-pressure.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import ssl
from collections.abc import Callable
from typing import cast

import httptools

from relay.asgi import Headers

MAX_HEAD_BYTES = 128 * 1024  # of a response, interim responses included
MAX_HEADERS = 256
_HIGH_WATER = 256 * 1024  # response bytes held for a slow reader
_FIRST_WRITE = 64 * 1024
_WRITE_SIZE = 256 * 1024


class UpstreamError(Exception):
    """The provider did not answer as it should. The text is for people and holds no secret."""


class UpstreamUnreachable(UpstreamError):
    """No connection: nothing was sent."""


class UpstreamTLSFailed(UpstreamUnreachable):
    """The other end could not prove who it is, or does not speak TLS."""


class UpstreamSilent(UpstreamError):
    """Nothing moved for the idle timeout."""


class UpstreamBroken(UpstreamError):
    """It closed too early, or what it sent is no HTTP."""


class Connection(asyncio.Protocol):
    """One connection, carrying one exchange at a time."""

    def __init__(self, on_lost: Callable[[Connection], None], idle_timeout_s: float) -> None:
        self.keep_hint_s = float("inf")
        self._on_lost = on_lost
        self._idle_timeout_s = idle_timeout_s
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._rests_until = 0.0
        self._waiter: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._write_paused = False
        self._read_paused = False
        self._busy = False
        self._moved_at = 0.0
        self._reset()

    def _reset(self) -> None:
        self.status = 0
        self.headers: Headers = []
        self._parser: httptools.HttpResponseParser | None = None
        self._head_only = False
        self._head_bytes = 0
        self._in_head = True
        self._sized = False  # its length is known from its framing
        self._keep_alive = False
        self._sent = False
        self._whole = False
        self._surplus = False
        self._error: Exception | None = None
        self._pieces: list[bytes] = []
        self._held = 0
        # The parser calls this for each chunk, and a stream has one for each event.
        self.on_body: Callable[[bytes], None] = self._pieces.append

    # -- as a member of the pool -------------------------------------------------------------------
    @property
    def reusable(self) -> bool:
        """Whether the exchange ended so that another may follow."""
        return (
            self._whole
            and self._sent
            and self._keep_alive
            and self._sized
            and not self._surplus
            and self._error is None
            and not self._is_closing()
        )

    def rest(self, seconds: float) -> None:
        """Wait for the next exchange, at most that long."""
        self._busy = False
        self._resume_reading()
        if seconds <= 0:
            self.close()
        else:
            self._rests_until = self._loop.time() + seconds
            self._look_at_time_by(self._rests_until)

    def wake(self) -> bool:
        """Whether it is alive. Looks at the socket: the loop may not yet have seen its end."""
        if self._is_closing():
            return False
        if self._unread.poll(0):
            self.close()
            return False
        return True

    def close(self) -> None:
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()
        self._on_lost(self)

    def abort(self, reason: Exception) -> None:
        """End the exchange under way with `reason` and close."""
        self._fail(reason)
        self.close()

    # -- an exchange -------------------------------------------------------------------------------
    async def request(self, method: bytes, target: bytes, headers: Headers, body: bytes) -> None:
        self._reset()
        if self._is_closing():
            raise UpstreamBroken("the provider closed the connection without an answer")
        self._head_only = method == b"HEAD"
        if self._head_only:
            self.on_body = self._have_surplus
        self._parser = httptools.HttpResponseParser(self)
        self._busy = True
        self._moved_at = self._loop.time()
        self._look_at_time_by(self._moved_at + self._idle_timeout_s)
        lines = [b"%b %b HTTP/1.1\r\n" % (method, target)]
        lines += [b"%b: %b\r\n" % header for header in headers]
        if body or method == b"POST":
            lines.append(b"content-length: %d\r\n" % len(body))
        lines.append(b"\r\n")
        head = b"".join(lines)
        await self._write(head, body)
        while self._in_head:
            await self._wait()

    async def _write(self, head: bytes, body: bytes) -> None:
        transport = cast("asyncio.Transport", self._transport)
        if len(body) <= _FIRST_WRITE:
            transport.write(head + body)
            self._sent = True
            return
        transport.write(head)
        view = memoryview(body)
        for start in range(0, len(body), _WRITE_SIZE):
            while self._write_paused:
                if self._error is not None or not self._in_head:
                    return  # it answered without reading everything, or it is gone
                self._writable = self._loop.create_future()
                await self._writable
            if self._error is not None or not self._in_head:
                return
            transport.write(view[start : start + _WRITE_SIZE])
        self._sent = True

    async def read(self) -> tuple[bytes, bool]:
        while not self._pieces and not self._whole:
            await self._wait()
        pieces = self._pieces
        joined = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self._held = 0
        if self._read_paused and not self._whole:
            self._moved_at = self._loop.time()
            self._resume_reading()
        return joined, not self._whole

    async def _wait(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        if self._error is not None and not self._pieces:
            raise self._error

    # -- asyncio calls these -----------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._unread = select.poll()
        self._unread.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        if not self._busy or self._parser is None:
            self.close()  # nobody asked: a provider's farewell, or garbage
            return
        self._moved_at = self._loop.time()
        if self._in_head:
            self._head_bytes += len(data)
        else:
            self._held += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(UpstreamBroken("the provider switched protocols"))
        except httptools.HttpParserError as error:
            if self._whole:
                self._surplus = True
            else:
                cause = error.__context__  # what a callback of ours raised
                unreadable = UpstreamBroken("the provider's answer is no HTTP")
                self._fail(cause if isinstance(cause, UpstreamBroken) else unreadable)
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES:
            self._fail(UpstreamBroken("the provider's response headers are too large"))
        if self._held > _HIGH_WATER and not self._read_paused and not self._whole:
            self._read_paused = True
            cast("asyncio.Transport", self._transport).pause_reading()
        if self._error is not None:
            self.close()
        self._notify()

    def eof_received(self) -> None:
        self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if exc is not None and self._busy and not self._whole:
            self._fail(UpstreamBroken(f"the connection to the provider broke: {os_words(exc)}"))
        self._end()
        self._transport = None  # asyncio fails when told to abort one that ended by itself
        self._on_lost(self)

    def pause_writing(self) -> None:
        self._write_paused = True

    def resume_writing(self) -> None:
        self._write_paused = False
        self._moved_at = self._loop.time()
        self._notify()

    # -- the parser calls these --------------------------------------------------------------------
    def on_message_begin(self) -> None:
        if self._whole:
            raise UpstreamBroken("the provider answered twice")  # ends the parsing

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # a trailer: consumed, never passed on
        if len(self.headers) >= MAX_HEADERS:
            raise UpstreamBroken("the provider's response has too many headers")
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._whole:
            return
        parser = cast("httptools.HttpResponseParser", self._parser)
        status = parser.get_status_code()
        if 100 <= status < 200:
            self.headers = []
            return
        if not 200 <= status <= 599:
            raise UpstreamBroken(f"the provider answered with the impossible status {status}")
        self.status = status
        self._in_head = False
        self._keep_alive = parser.should_keep_alive()
        framing = {name: value for name, value in self.headers if name in _FRAMING}
        bodyless = self._head_only or status in (204, 304)
        self._sized = bodyless or b"content-length" in framing or b"transfer-encoding" in framing
        if b"keep-alive" in framing:
            self.keep_hint_s = _keep_alive_seconds(framing[b"keep-alive"])
        if self._head_only:
            self._whole = True  # the parser would wait for a body that a HEAD does not have

    def on_message_complete(self) -> None:
        if not self._in_head:
            self._whole = True

    # -- inside ------------------------------------------------------------------------------------
    def _end(self) -> None:
        """The provider will send nothing more."""
        if self._busy and not self._whole and self._error is None:
            if not self._in_head and not self._sized:
                self._whole = True  # its length was "until I close"
            elif self._in_head:
                self._fail(UpstreamBroken("the provider closed the connection without an answer"))
            else:
                self._fail(UpstreamBroken("the provider cut its answer short"))
        self._notify()

    def _have_surplus(self, body: bytes) -> None:
        self._surplus = True

    def _fail(self, reason: Exception) -> None:
        if self._error is None and not self._whole:
            self._error = reason
        self._notify()

    def _notify(self) -> None:
        for future in (self._waiter, self._writable):
            if future is not None and not future.done():
                future.set_result(None)

    def _look_at_time_by(self, when: float) -> None:
        """Have the time looked at then, or earlier.

        A timer that is set for an earlier time stays, and is set anew when it fires: calls follow
        one another faster than timers come due, and each setting costs.
        """
        if self._timer is not None and self._timer_at <= when:
            return
        self._stop_timer()
        self._timer_at = when
        self._timer = self._loop.call_at(when, self._look_at_time)

    def _look_at_time(self) -> None:
        self._timer = None
        now = self._loop.time()
        if not self._busy:
            due = self._rests_until
        elif self._whole or self._read_paused:
            # Nothing is owed; or the provider is held back, and its silence is ours.
            due = now + self._idle_timeout_s
        else:
            due = self._moved_at + self._idle_timeout_s
        if due - now > 0.001:
            self._look_at_time_by(due)
        elif self._busy:
            self.abort(UpstreamSilent(f"the provider was silent for {self._idle_timeout_s:g} s"))
        else:
            self.close()

    def _resume_reading(self) -> None:
        if self._read_paused and not self._is_closing():
            self._read_paused = False
            cast("asyncio.Transport", self._transport).resume_reading()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _is_closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()


_FRAMING = frozenset({b"content-length", b"transfer-encoding", b"keep-alive"})


def _keep_alive_seconds(value: bytes) -> float:
    """How long the provider says it keeps an idle connection, less a second; inf if it does not."""
    for parameter in value.split(b","):
        name, _, seconds = parameter.partition(b"=")
        if name.strip().lower() == b"timeout" and seconds.strip().isdigit():
            return max(0.0, min(float(seconds[:9]), 3600.0) - 1.0)
    return float("inf")


def os_words(error: Exception) -> str:
    """An error of the operating system or of TLS in a few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({getattr(error, 'reason', None) or error.strerror})"
    if isinstance(error, OSError) and error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)  # asyncio puts the address into its own text
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
