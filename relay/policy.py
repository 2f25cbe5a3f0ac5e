"""What one relay allows and where it sends it: plain data, made once per run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from relay.budget import Budget
from relay.endpoints import Endpoint, endpoint_of
from relay.prices import PriceTable
from relay.providers import InvalidProvider, Provider, Route, route_at

MIB = 1024 * 1024
_MODEL_NAME = re.compile(r"[\x21-\x7e]{1,256}")


class InvalidPolicy(ValueError):
    """Rules that contradict each other or mean nothing; the text says what would do."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one relay. Sizes are bytes, times seconds.

    Args:
        upstream: where calls go; None: the provider's own host.
        allow_models: the names a request may name, exactly so; empty: any.
        max_tokens_cap: the most tokens one call may be answered with.
        extra_routes: what may pass beside the provider's own routes; see `extra_route`.
        max_calls: how many calls may go out; those of the provider's own routes that are no model
            calls (its model list, counting tokens) do not count, those of `extra_routes` do.
        budget: what they may cost together.
        prices: what models cost; None: the table that comes with sanduk.
        max_body_bytes: of one request.
        max_buffered_bytes: of all request bodies held at one time.
        connect_timeout_s: for look-up, connection and TLS handshake together.
        idle_timeout_s: silence of the upstream; there is no total timeout.
        body_timeout_s: silence of a client that still owes a request body.
        drain_timeout_s: how long an answer that its client left is still read under a budget, to
            learn what it cost.

    Raises:
        InvalidPolicy: see there.
    """

    provider: Provider
    upstream: Endpoint | None = None
    allow_models: frozenset[str] = frozenset()
    max_tokens_cap: int | None = None
    extra_routes: tuple[Route, ...] = ()
    max_calls: int | None = None
    budget: Budget | None = None
    prices: PriceTable | None = None
    max_body_bytes: int = 64 * MIB
    max_buffered_bytes: int = 256 * MIB
    connect_timeout_s: float = 10.0
    idle_timeout_s: float = 300.0
    body_timeout_s: float = 30.0
    drain_timeout_s: float = 15.0

    def __post_init__(self) -> None:
        for flag, value in (
            ("--max-tokens-cap", self.max_tokens_cap),
            ("--max-calls", self.max_calls),
            ("--max-body", self.max_body_bytes),
        ):
            if value is not None and (type(value) is not int or value < 1):
                in_mb = flag == "--max-body" and type(value) is int
                shown = value // MIB if in_mb else value
                raise InvalidPolicy(f"{flag} takes a whole number above 0, not {shown}")
        for model in self.allow_models:
            if not _MODEL_NAME.fullmatch(model):
                raise InvalidPolicy(f"--allow-model {model!r}: no model has such a name")
        self._check_budget()
        self._check_routes()

    def _check_budget(self) -> None:
        """A budget that would let through what nobody can add up is none."""
        is_serial = self.budget is not None and self.budget.unpriced == "serial"
        if is_serial and not self.provider.reports_cost:
            raise InvalidPolicy(
                f"--unpriced serial is for providers that report what a call cost, and "
                f"{self.provider.name} does not: give the model a price in prices.toml, or bound "
                "the run with --token-budget instead of --budget"
            )

    def _check_routes(self) -> None:
        taken = {route.path for route in self.provider.routes}
        for route in self.extra_routes:
            if route.path in taken:
                raise InvalidPolicy(f"--allow-path {route.path}: this path is a route already")
            taken.add(route.path)
            if self.budget and route.protocol is None and "POST" in route.methods:
                raise InvalidPolicy(
                    f"--allow-path {route.path}: what its calls cost can be read only with its "
                    f"protocol, as {route.path}=openai-chat; or leave the budget out"
                )

    @property
    def endpoint(self) -> Endpoint:
        """Where requests go."""
        provider = self.provider
        return self.upstream or endpoint_of(provider.scheme, provider.host, provider.port)

    @property
    def judges_bodies(self) -> bool:
        """Whether any rule looks into a request's body."""
        return bool(self.allow_models or self.max_tokens_cap or self.budget)


def extra_route(text: str, provider: Provider) -> Route:
    """Read `PATH` or `PATH=PROTOCOL`, as --allow-path takes it.

    With a protocol its calls are model calls, judged and metered, and go by POST. Without one they
    go by GET or POST. No query passes, and no other method.

    Raises:
        InvalidPolicy: the path is not canonical, or there is no such protocol.
    """
    path, separator, protocol = text.partition("=")
    if "?" in path or "#" in path:
        raise InvalidPolicy(f"--allow-path {text}: give the path alone; no query passes on it")
    try:
        return route_at(path, protocol if separator else None, provider.accepts)
    except InvalidProvider as error:
        raise InvalidPolicy(f"--allow-path {text}: {error}") from None
