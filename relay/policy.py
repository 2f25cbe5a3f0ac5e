"""What one relay allows and where it sends it: plain data, made once per run."""

from __future__ import annotations

from dataclasses import dataclass

from relay.endpoints import Endpoint, endpoint_of
from relay.providers import Provider

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one relay. Sizes are bytes, times seconds.

    Rules that judge a request's body (models, output bounds, budgets) are further fields here;
    `relay.app` consults them in its one place between reading a body and sending it.
    """

    provider: Provider
    upstream: Endpoint | None = None  # None: the provider's own host
    max_body_bytes: int = 64 * MIB  # of one request
    max_buffered_bytes: int = 256 * MIB  # of all request bodies held at one time
    connect_timeout_s: float = 10.0  # look-up, connection and TLS handshake together
    idle_timeout_s: float = 300.0  # silence of the upstream; there is no total timeout
    body_timeout_s: float = 30.0  # silence of a client that still owes a request body

    @property
    def endpoint(self) -> Endpoint:
        """Where requests go."""
        provider = self.provider
        return self.upstream or endpoint_of(provider.scheme, provider.host, provider.port)
