"""Calls of the client towards the provider, without the relay before it."""

from __future__ import annotations

import contextlib

from relay.endpoints import Endpoint
from relay.upstream import UpstreamClient
from tests.relay.stand import Provider

HOST = [(b"host", b"provider")]


@contextlib.asynccontextmanager
async def calling(answer, **timeouts):
    provider = Provider(answer)
    async with provider.running():
        client = UpstreamClient(Endpoint("http", "127.0.0.1", provider.port), **timeouts)
        client.provider = provider
        try:
            yield client
        finally:
            await client.aclose()


async def call(client, body=b"{}", method=b"POST"):
    """Status, headers and body of one call."""
    exchange = client.exchange()
    try:
        await exchange.send(method, b"/v1/messages", HOST, body)
        pieces, more = [], True
        while more:
            piece, more = await exchange.read()
            pieces.append(piece)
        return exchange.status, exchange.headers, b"".join(pieces)
    finally:
        exchange.close()
