"""Serves an ASGI application on one socket, in the running event loop, for the length of a block.

uvicorn's HTTP protocol does the work. It is made for applications that trust the parsed request,
so the subclass here adds what a relay needs: the raw request target, limits on a request's head
in size, count and time, no HTTP/1.0, and a close that does not wait. uvicorn's `Server` is not
used: it takes over signals, and it looks up ten times a second whether it should stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from relay.app import AnswerCut
from relay.asgi import ASGIApp, Receive, Scope, Send

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 128
HEAD_TIME_S = 15.0  # from the first byte of a request head to its last
KEEP_ALIVE_S = 300  # longer than any client keeps an idle connection: the client closes, not we
MAX_DISCARDED_BYTES = 64 * 1024 * 1024  # of a refused request's body, before the connection ends
LINGER_S = 1.0  # for a client that still writes, after a refusal
MAX_CONNECTIONS = 1024
BACKLOG = 1024
_GRACE_S = 0.03  # for calls in flight to end as records, once their connections are closed

_log = logging.getLogger(__name__)
# uvicorn reports what hostile clients do as warnings and a cut answer as an error; both are
# records of the relay already.
_silent = logging.getLogger(f"{__name__}.uvicorn")
_silent.disabled = True


@contextlib.asynccontextmanager
async def serving(app: ASGIApp, bound: socket.socket) -> AsyncIterator[None]:
    """Serve `app` on a bound socket inside the block; afterwards the socket is closed.

    Leaving the block is quick: connections are closed, calls in flight see their client leave,
    and whatever is not done at once is cancelled. Then the application's own `aclose`, if it has
    one, is awaited.
    """
    state = ServerState()
    config = Config(
        _guarded(app),
        http=RelayProtocol,
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
    )
    config.load()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: RelayProtocol(config, state, {}), sock=bound, backlog=BACKLOG
    )
    try:
        yield
    finally:
        server.close()
        await _end(state)
        close = getattr(app, "aclose", None)
        if close is not None:
            await close()
        bound.close()


async def _end(state: ServerState) -> None:
    for connection in list(state.connections):
        connection.transport.abort()
    tasks = set(state.tasks)
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=_GRACE_S)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=1.0)
    await asyncio.sleep(0)


def _guarded(app: ASGIApp) -> ASGIApp:
    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except AnswerCut:
            raise  # uvicorn closes the connection without ending the answer
        except Exception:
            _log.exception("a call failed in a way that was not foreseen")
            raise

    return guarded


class BadRequest(Exception):
    """A request that breaks the rules of HTTP as this server understands them."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class _HeadWithBody:
    """The transport of one response: its head leaves with its first body bytes, in one write.

    uvicorn writes them apart. The second write costs the relay a system call and the client a
    wake-up, a good part of what a call costs at all. A head whose body does not follow at once
    leaves by itself.
    """

    __slots__ = ("_close", "_head", "_is_first", "_loop", "_transport")

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        close: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._close = close
        self._loop = loop
        self._is_first = True
        self._head = b""

    def write(self, data: bytes) -> None:
        if self._transport.is_closing():
            self._head = b""  # uvloop takes it for a fault to write there
        elif self._is_first:
            self._is_first = False
            self._head = data
            self._loop.call_soon(self.flush)
        elif self._head:
            head, self._head = self._head, b""
            self._transport.write(head + data)
        else:
            self._transport.write(data)

    def close(self) -> None:
        self.flush()
        self._close()

    def forget(self) -> None:
        """Write nothing that is still held back: the connection says something else now."""
        self._head = b""

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def flush(self) -> None:
        head, self._head = self._head, b""
        if head and not self._transport.is_closing():
            self._transport.write(head)


class RelayProtocol(HttpToolsProtocol):
    """One client connection."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.logger = _silent
        self._open: deque[RequestResponseCycle] = deque()  # requests without a whole response
        self._in_head = False
        self._fed_in_head = 0
        self._head_size = 0
        self._header_count = 0
        self._discarded = 0
        self._refused = False
        self._unused_since = 0.0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._unused_since = self.loop.time()
        self._keep_alive = self.loop.call_later(KEEP_ALIVE_S, self._close_if_unused)
        if len(self.connections) > MAX_CONNECTIONS:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_deadline()
        self._keep_alive.cancel()
        # uvicorn tells only the latest of several pipelined requests.
        for cycle in self._open:
            _leave(cycle)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            self._discard(len(data))
            return
        if self._in_head:
            self._fed_in_head += len(data)
        try:
            self.parser.feed_data(data)
            if self._in_head and self._fed_in_head > MAX_HEAD_BYTES:
                raise _head_too_large()
        except httptools.HttpParserUpgrade:
            # The request is with the application, which refuses it. What follows is not HTTP.
            self.flow.pause_reading()
        except httptools.HttpParserError as error:
            cause = error.__context__  # what a callback of ours raised
            malformed = BadRequest(HTTPStatus.BAD_REQUEST, "this is no valid HTTP request")
            self._refuse(cause if isinstance(cause, BadRequest) else malformed)
        except BadRequest as error:
            self._refuse(error)
        if self._in_head and self._deadline is None:
            # Most heads come in one piece and need no timer.
            self._deadline = self.loop.call_later(HEAD_TIME_S, self._head_is_late)
        if not self._open and not self._in_head:
            self._unused_since = self.loop.time()

    # -- the parser calls these ----------------------------------------------------------------
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._fed_in_head = self._head_size = self._header_count = 0
        self._stop_deadline()

    def on_url(self, url: bytes) -> None:
        self._head_size += len(url)
        if self._head_size > MAX_HEAD_BYTES:
            raise _head_too_large()
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # a trailer: consumed, never passed on
        self._header_count += 1
        self._head_size += len(name) + len(value) + 4
        if self._head_size > MAX_HEAD_BYTES or self._header_count > MAX_HEADERS:
            raise _head_too_large()
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_deadline()
        if self.parser.get_http_version() != "1.1":
            raise BadRequest(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "this server speaks HTTP/1.1")
        for name, value in self.headers:
            if name == b"transfer-encoding" and value.strip().lower() != b"chunked":
                raise BadRequest(HTTPStatus.BAD_REQUEST, "a request body may only be chunked")
        # uvicorn would parse the target, losing what it does not expect or failing on it. It gets
        # a harmless one; the application gets the bytes of the request line.
        target, self.url = self.url, b"/"
        scope: Any = self.scope
        super().on_headers_complete()
        raw_path, _, query = target.partition(b"?")
        scope.update(
            raw_target=target,
            raw_path=raw_path,
            query_string=query,
            path=raw_path.decode("latin-1"),
            gone=self.loop.create_future(),  # done when the client has left
        )
        if self.parser.should_upgrade():
            self.cycle.keep_alive = False
        transport = _HeadWithBody(self.transport, self.loop, self._close)
        self.cycle.transport = cast("asyncio.Transport", transport)
        self._open.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        if self.cycle.response_complete:
            self._discard(len(body))
            return
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        cast("dict[str, Any]", self.scope)["body_is_here"] = True
        if len(self._open) == 1:
            self.flow.resume_reading()  # else nobody would see the client leave

    def on_response_complete(self) -> None:
        if self._open:
            # A response to HEAD has no body whose bytes would take its head along.
            cast("_HeadWithBody", self._open.popleft().transport).flush()
        # Not uvicorn's own: it sets a timer after each response, and here one is kept for all.
        self.server_state.total_requests += 1
        if self.transport.is_closing() or self._refused:
            return
        self._unused_since = self.loop.time()
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    # -- inside --------------------------------------------------------------------------------
    def _discard(self, size: int) -> None:
        self._discarded += size
        if self._discarded > MAX_DISCARDED_BYTES:
            self.transport.abort()

    def _head_is_late(self) -> None:
        message = f"the request head did not come within {HEAD_TIME_S:g} s"
        self._refuse(BadRequest(HTTPStatus.REQUEST_TIMEOUT, message))

    def _refuse(self, error: BadRequest) -> None:
        """Answer a request that cannot be handed on, and close."""
        self._refused = True
        self._in_head = False
        self._stop_deadline()
        for cycle in self._open:
            if cycle.response_started or len(self._open) > 1:
                self.transport.abort()  # an answer is under way: there is no place for another
                return
            _leave(cycle)
            cycle.waiting_for_100_continue = False
            cast("_HeadWithBody", cycle.transport).forget()
        body = json.dumps(
            {"error": {"message": error.message, "type": "invalid_request_error", "code": "http"}}
        ).encode()
        self.transport.write(
            b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
            b"connection: close\r\n\r\n%b"
            % (error.status, error.status.phrase.encode(), len(body), body)
        )
        self._linger()

    def _close(self) -> None:
        """Close after a response."""
        if self.cycle.more_body and not self.transport.is_closing():
            self._linger()
        else:
            self.transport.close()

    def _linger(self) -> None:
        """Say no more, and read on for a while before closing.

        A client still writing would lose the answer to a reset if we closed at once.
        """
        self._refused = True
        self._stop_deadline()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._deadline = self.loop.call_later(LINGER_S, self.transport.abort)

    def _make_room(self) -> None:
        """Close the connection that has asked for nothing the longest; else the newest, this one.

        So somebody who opens connections and says nothing keeps nobody else out.
        """
        connections = cast("set[RelayProtocol]", self.connections)
        live = [one for one in connections if not one.transport.is_closing()]
        if len(live) > MAX_CONNECTIONS:
            unused = (one for one in live if one is not self and not one._open)
            oldest = min(unused, key=lambda one: one._unused_since, default=self)
            oldest.transport.abort()

    def _close_if_unused(self) -> None:
        now = self.loop.time()
        left = KEEP_ALIVE_S - (0 if self._open or self._in_head else now - self._unused_since)
        if left > 0.001:
            self._keep_alive = self.loop.call_later(left, self._close_if_unused)
        else:
            self.transport.close()

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _leave(cycle: RequestResponseCycle) -> None:
    """Tell the application that its client is gone. uvicorn tells only who waits to receive."""
    cycle.disconnected = True
    cycle.message_event.set()
    gone = cast("dict[str, Any]", cycle.scope)["gone"]
    if not gone.done():
        gone.set_result(None)


def _head_too_large() -> BadRequest:
    return BadRequest(
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        f"a request head may have {MAX_HEAD_BYTES} bytes and {MAX_HEADERS} headers",
    )
