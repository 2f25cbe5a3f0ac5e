"""The relay: an ASGI application that forwards the calls of one run to one provider.

It forwards and does not translate. A call goes through five stages: the gate (token, route,
framing), its body (read whole, within limits, judged where a policy says so), its turn (where
there is a budget), the provider, and the way back (each piece as it arrives, unchanged, with the
meter looking on). Every request ends as one record in the ledger, however it ends.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time

from relay.admission import Admitted, Gate, Refusal
from relay.asgi import Headers, Receive, Scope, Send
from relay.bodies import BodyLog
from relay.budget import Reservation
from relay.connection import UpstreamError, UpstreamSilent
from relay.credential import Credential
from relay.headers import Outgoing, returning, value_of
from relay.intake import Buffers, ClientLeft, Intake
from relay.meter import Meter
from relay.policy import Policy
from relay.protocols import dialect
from relay.records import CallRecord, Ledger, Protocol
from relay.rules import prepare
from relay.selftest import prove
from relay.spending import Ask, Outcome, Spending
from relay.upstream import Exchange, UpstreamClient

_log = logging.getLogger(__name__)


class AnswerCut(Exception):
    """The provider's answer stopped in the middle; the client's connection must stop too."""


def create_app(
    policy: Policy,
    credential: Credential | None,
    token: str,
    ledger: Ledger,
    bodies: BodyLog | None = None,
) -> Relay:
    """The relay of one run.

    Args:
        credential: the provider's key; None for a provider that needs none.
        token: the run token, which every request must carry.
        ledger: counts the calls and is handed each record when its call has ended.
        bodies: where what is sent and what becomes of it is kept; its owner closes it.

    Raises:
        ValueError: the provider needs a key, or the token is empty.
        RuleInactive: a rule of the policy does not refuse what it should.
    """
    if credential is None and policy.provider.needs_key:
        raise ValueError(f"provider {policy.provider.name} needs a key")
    prove(policy)
    return Relay(policy, credential, token, ledger, bodies)


class Relay:
    """See `create_app`. Close it with `aclose` in the event loop that used it."""

    def __init__(
        self,
        policy: Policy,
        credential: Credential | None,
        token: str,
        ledger: Ledger,
        bodies: BodyLog | None,
    ) -> None:
        self.policy = policy
        self.ledger = ledger
        self.bodies = bodies
        self.client = UpstreamClient(
            policy.endpoint,
            connect_timeout_s=policy.connect_timeout_s,
            idle_timeout_s=policy.idle_timeout_s,
        )
        self.spending = Spending(policy, ledger)
        self._gate = Gate(policy.provider, token, policy.extra_routes)
        self._outgoing = Outgoing(policy.provider, policy.endpoint.authority, credential)
        self.counted_calls = 0  # that went out and fall under --max-calls
        self.buffers = Buffers(policy.max_buffered_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"the relay serves http only, not {scope['type']}")
        await _Call(self, scope, receive, send).run()

    async def aclose(self) -> None:
        """Close the connections to the provider."""
        await self.client.aclose()

    def admit(self, scope: Scope, headers: Headers) -> Admitted:
        return self._gate.admit(scope, headers)

    def protocol_of(self, scope: Scope, headers: Headers) -> Protocol | None:
        """The protocol a refused client most likely speaks."""
        route = self._gate.route(scope)
        if route is not None and route.protocol:
            return route.protocol
        offered = self.policy.provider.protocols
        if len(offered) == 1:
            return offered[0]
        if "anthropic-messages" in offered and any(n == b"anthropic-version" for n, _ in headers):
            return "anthropic-messages"
        return "openai-chat"

    def outgoing(self, headers: Headers) -> Headers:
        return self._outgoing(headers)


class _Call:
    """One request, from its first byte to its record."""

    def __init__(self, relay: Relay, scope: Scope, receive: Receive, send: Send) -> None:
        self._relay = relay
        self._policy = relay.policy
        self._ledger = relay.ledger
        self._scope = scope
        self._receive = receive
        self._intake = Intake(relay.policy, relay.buffers, scope, receive)
        self._send = send
        self._headers: Headers = list(scope["headers"])
        self._body = b""
        self._meter: Meter | None = None
        self._ask: Ask | None = None
        self._outcome = Outcome()
        self._reservation: Reservation | None = None
        self._is_gone = False  # the client left, and its answer is read for the meter only
        self._ledger.sequence += 1
        self.record = CallRecord(
            sequence=self._ledger.sequence,
            method=scope["method"],
            path=scope.get("path", "")[:512],
            started_at=time.time(),
        )

    async def run(self) -> None:
        ledger, record = self._ledger, self.record
        ledger.in_flight += 1
        ledger.last_activity = time.monotonic()
        try:
            await self._answer()
        except Refusal as refusal:
            record.refusal = refusal.rule
            ledger.refused += 1
            await self._say_no(refusal)
        except ClientLeft:
            record.error = "the client left before its answer ended"
        except asyncio.CancelledError:
            record.error = record.error or "the relay was stopped"
            raise
        finally:
            self._let_body_go()
            ledger.in_flight -= 1
            self._file()

    async def _answer(self) -> None:
        admitted = self._relay.admit(self._scope, self._headers)
        self.record.protocol = admitted.route.protocol
        self._body = await self._intake.read(self._headers, self.record, self._ledger)
        exchange = self._relay.client.exchange()
        gone = self._scope.get("gone") or asyncio.ensure_future(self._until_gone())

        def leave(_: object) -> None:
            self._client_left(exchange)

        try:
            await self._prepare(admitted, gone)
            gone.add_done_callback(leave)
            self._count(admitted)
            await self._relay_call(exchange, admitted)
        finally:
            self._outcome.sent = exchange.is_sent
            exchange.close()
            gone.remove_done_callback(leave)
            gone.cancel()

    # -- what goes out, and when -------------------------------------------------------------------
    async def _prepare(self, admitted: Admitted, gone: asyncio.Future[None]) -> None:
        """Apply the policy to the body, and wait for the means to send it."""
        record, spending = self.record, self._relay.spending
        prepared = prepare(self._policy, admitted, self._body)
        self._body, body = prepared.text, prepared.body
        record.model_asked, record.clamped = prepared.model, prepared.clamped
        if body is not None:
            self._reservation = await spending.reserve(admitted, body, gone)
            if gone.done():
                raise ClientLeft
            if spending.limit(self._reservation, admitted, body):
                record.clamped = True
                self._body = body.encoded()
        if record.protocol is not None:
            self._ask = Ask.of(record.model_asked, record.protocol, self._body)

    def _count(self, admitted: Admitted) -> None:
        ledger, limit = self._ledger, self._policy.max_calls
        if admitted.route.protocol is not None or admitted.route in self._policy.extra_routes:
            if limit is not None and self._relay.counted_calls >= limit:
                raise Refusal(
                    403,
                    "max-calls",
                    f"this run has made its {limit} calls; a higher --max-calls would allow more",
                )
            self._relay.counted_calls += 1
        ledger.relayed += 1
        ledger.clamped += self.record.clamped

    def _client_left(self, exchange: Exchange) -> None:
        """Under a budget the answer is read on for a while: its end tells what it cost."""
        if self._reservation is None or not exchange.is_sent or exchange.is_closed:
            exchange.interrupt(ClientLeft())
            return
        self._is_gone = True
        loop = asyncio.get_running_loop()
        loop.call_later(self._policy.drain_timeout_s, exchange.interrupt, ClientLeft())

    async def _until_gone(self) -> None:
        """For servers that do not tell by themselves; a task for each call is dear."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def _let_body_go(self) -> None:
        """Free the request body: an answer may stream for an hour, and there may be many."""
        self._body = b""
        self._intake.let_go()

    # -- out and back ------------------------------------------------------------------------------
    async def _relay_call(self, exchange: Exchange, admitted: Admitted) -> None:
        method = self.record.method.encode()
        headers = self._relay.outgoing(self._headers)
        if self._relay.bodies is not None and self._body:
            self._relay.bodies.request(self.record.sequence, self._body, self.record.path)
        try:
            await exchange.send(method, admitted.target, headers, self._body)
            self._let_body_go()
        except UpstreamError as error:
            await self._upstream_failed(error)
            return
        await self._start(exchange)
        try:
            await self._stream(exchange)
        except UpstreamError as error:
            self.record.error = str(error)
            # A clean end would make the client believe what it has is everything.
            raise AnswerCut(str(error)) from error

    async def _start(self, exchange: Exchange) -> None:
        record = self.record
        record.first_byte_at = time.time()
        self._ledger.last_activity = time.monotonic()
        status, headers = exchange.status, exchange.headers
        self._outcome.status = status
        if record.protocol:
            self._meter = Meter(
                record.protocol,
                value_of(headers, b"content-type"),
                value_of(headers, b"content-encoding"),
            )
        if self._is_gone:
            return
        record.status = status
        await self._send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": returning(headers, status),
            }
        )

    async def _stream(self, exchange: Exchange) -> None:
        record, ledger, meter = self.record, self._ledger, self._meter
        more = True
        while more:
            piece, more = await exchange.read()
            ledger.last_activity = time.monotonic()
            if not self._is_gone:
                await self._send({"type": "http.response.body", "body": piece, "more_body": more})
                record.bytes_out += len(piece)
            if meter is not None:
                meter.feed(piece)
        self._outcome.whole = True
        if self._is_gone:
            raise ClientLeft
        record.completed = record.protocol is not None and 200 <= exchange.status < 300

    async def _upstream_failed(self, error: UpstreamError) -> None:
        self.record.error = str(error)
        silent = isinstance(error, UpstreamSilent)
        status, rule = (504, "upstream_timeout") if silent else (502, "upstream_error")
        await self._reply(status, rule, f"the relay got no answer: {error}", ())

    # -- saying no, and the record -----------------------------------------------------------------
    async def _say_no(self, refusal: Refusal) -> None:
        headers = list(refusal.headers)
        if refusal.status < 500:
            headers.append((b"x-should-retry", b"false"))  # the SDKs of both vendors heed it
        if any(name == b"expect" for name, _ in self._headers):
            headers.append((b"connection", b"close"))  # the body may come or not: unknowable
        await self._reply(refusal.status, refusal.rule, refusal.message, tuple(headers))

    async def _reply(
        self, status: int, rule: str, message: str, headers: tuple[tuple[bytes, bytes], ...]
    ) -> None:
        protocol = self.record.protocol or self._relay.protocol_of(self._scope, self._headers)
        body = json.dumps(dialect(protocol).refusal(status, rule, message)).encode()
        self.record.status = status
        self.record.first_byte_at = time.time()
        self.record.bytes_out = len(body)
        await self._send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [
                    (b"content-type", b"application/json"),
                    (b"content-length", str(len(body)).encode()),
                    *headers,
                ],
            }
        )
        await self._send({"type": "http.response.body", "body": body})

    def _file(self) -> None:
        record, ledger = self.record, self._ledger
        record.ended_at = time.time()
        ledger.last_activity = time.monotonic()
        meter = self._meter
        if meter is not None:
            meter.finish()
            record.model_answered = meter.model
            record.usage = meter.usage
            record.raw_usage = meter.raw
            if self._policy.provider.reports_cost:
                record.reported_cost_usd = meter.reported_cost_usd
        self._relay.spending.settle(record, self._ask, self._outcome, meter, self._reservation)
        if record.completed:
            ledger.completed += 1
        if self._relay.bodies is not None:
            self._relay.bodies.outcome(record)
        if ledger.on_call is not None:
            try:
                ledger.on_call(record)
            except Exception:  # noqa: BLE001
                # The answer has been given; whoever reads the ledger must not undo that.
                _log.exception("the ledger's listener failed on call %d", record.sequence)
