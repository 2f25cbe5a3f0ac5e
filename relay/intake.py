"""A request's body: read whole, within limits of size, time and memory."""

from __future__ import annotations

import asyncio
import time

from relay.admission import Refusal
from relay.asgi import Headers, Message, Receive, Scope
from relay.headers import value_of
from relay.policy import MIB, Policy
from relay.records import CallRecord, Ledger


class ClientLeft(Exception):
    """The client closed its connection before its answer ended."""


class Buffers:
    """The request body bytes that all calls of a relay hold together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0

    def hold(self, size: int) -> bool:
        """Count bytes as held; False when that is more than there may be."""
        self._held += size
        return self._held <= self._most


class Intake:
    """The body of one request. What it reads counts as held until it is let go."""

    def __init__(self, policy: Policy, buffers: Buffers, scope: Scope, receive: Receive) -> None:
        self._policy = policy
        self._buffers = buffers
        self._scope = scope
        self._receive = receive
        self._held = 0

    async def read(self, headers: Headers, record: CallRecord, ledger: Ledger) -> bytes:
        """The whole body, counted in `record` as it comes.

        Raises Refusal for a body beyond a limit or where there may be none, and ClientLeft.
        """
        limit = self._policy.max_body_bytes
        declared = value_of(headers, b"content-length")
        if declared.isdigit() and int(declared) > limit:
            raise _too_large(limit)
        pieces: list[bytes] = []
        more = True
        while more:
            message = await self._next_message()
            piece = message.get("body", b"")
            more = message.get("more_body", False)
            if not piece:
                continue
            record.bytes_in += len(piece)
            if record.bytes_in > limit:
                raise _too_large(limit)
            if record.method == "GET":
                raise Refusal(400, "framing", "a GET request has no body")
            self._held += len(piece)
            if not self._buffers.hold(len(piece)):
                raise Refusal(
                    503, "buffer", "too many large requests at one time; wait for one to end"
                )
            pieces.append(piece)
            ledger.last_activity = time.monotonic()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _next_message(self) -> Message:
        message = await self._received()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        return message

    async def _received(self) -> Message:
        if "body_is_here" in self._scope:  # our server says so; it spares most calls a timer
            return await self._receive()
        seconds = self._policy.body_timeout_s
        try:
            async with asyncio.timeout(seconds):
                return await self._receive()
        except TimeoutError:
            raise Refusal(
                408,
                "body-time",
                f"the request body did not come within {seconds:g} s",
                ((b"connection", b"close"),),
            ) from None

    def let_go(self) -> None:
        self._buffers.hold(-self._held)
        self._held = 0


def _too_large(limit: int) -> Refusal:
    return Refusal(
        413,
        "body-size",
        f"a request body may have {limit:,} bytes ({limit / MIB:g} MB); a higher --max-body would "
        "allow more",
    )
