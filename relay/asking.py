"""One question of ours to a provider, with its key: no redirects, and as the relay's calls go.

The same client, proxy and certificate settings are used: what answers here is reached there too.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relay.asgi import Headers
from relay.credential import Credential
from relay.endpoints import Endpoint, endpoint_of
from relay.headers import Outgoing
from relay.providers import Provider
from relay.upstream import Exchange, UpstreamClient

MAX_BODY_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Reply:
    """`body` is the answer's JSON; None when it is none, or too large to matter."""

    status: int
    body: Any


async def ask(
    provider: Provider,
    credential: Credential,
    path: str,
    *,
    upstream: Endpoint | None = None,
    timeout_s: float,
    environ: Mapping[str, str] | None = None,
) -> Reply:
    """GET one path of the provider.

    Args:
        upstream: where the relay would send its calls; the provider's own host unless given.
        timeout_s: for everything together.
        environ: where proxy variables are looked up; this process's own unless given.

    Raises:
        InvalidProxy: a proxy variable cannot be used.
        UpstreamError: it cannot be reached, or (UpstreamTLSFailed) not be trusted.
        TimeoutError: it took longer.
    """
    endpoint = upstream or endpoint_of(provider.scheme, provider.host, provider.port)
    client = UpstreamClient(
        endpoint, connect_timeout_s=timeout_s, idle_timeout_s=timeout_s, environ=environ
    )
    headers: Headers = [
        (b"accept", b"application/json"),
        (b"accept-encoding", b"identity"),
        (b"user-agent", b"sanduk"),
        *((name.encode(), value.encode()) for name, value in provider.preflight_headers),
    ]
    exchange = client.exchange()
    try:
        async with asyncio.timeout(timeout_s):
            outgoing = Outgoing(provider, endpoint.authority, credential)
            await exchange.send(b"GET", path.encode(), outgoing(headers), b"")
            return Reply(exchange.status, await _read(exchange))
    finally:
        exchange.close()
        await client.aclose()


async def _read(exchange: Exchange) -> Any:
    body, more = b"", True
    while more and len(body) <= MAX_BODY_BYTES:
        piece, more = await exchange.read()
        body += piece
    if more:
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
