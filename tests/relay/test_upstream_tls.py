"""TLS to the provider."""

from __future__ import annotations

import contextlib
import socket
import time

import pytest

import relay.upstream
from relay.connection import UpstreamUnreachable
from relay.endpoints import Endpoint
from relay.upstream import UpstreamClient
from tests.pace import stretched
from tests.relay.certificates import server_context
from tests.relay.stand import Provider, plain, saying
from tests.relay.upstream_calls import call

pytestmark = pytest.mark.anyio


async def test_a_connection_that_hangs_is_unreachable_after_the_connect_timeout():
    # TLS to a server that never answers the handshake.
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        endpoint = Endpoint("https", "127.0.0.1", listening.getsockname()[1])
        client = UpstreamClient(endpoint, connect_timeout_s=0.3)
        started = time.monotonic()
        with pytest.raises(UpstreamUnreachable, match=r"within 0\.3 s"):
            await call(client)
        assert time.monotonic() - started < stretched(3)


@contextlib.asynccontextmanager
async def tls_provider(certificate):
    provider = Provider(saying(plain(b"ok")))
    async with provider.running(ssl=server_context(certificate)):
        yield provider


async def test_tls_is_verified_against_the_usual_ca_file_and_kept_open(trusting):
    async with tls_provider(trusting) as provider:
        client = UpstreamClient(Endpoint("https", "localhost", provider.port))
        for _ in range(5):
            assert (await call(client))[2] == b"ok"
        assert (client.opened, provider.connections) == (1, 1)
        assert relay.upstream.tls_context.cache_info().misses == 1
        await client.aclose()


@pytest.mark.usefixtures("fresh_tls_context")
async def test_a_certificate_nobody_vouches_for_is_refused(certificate):
    async with tls_provider(certificate) as provider:
        client = UpstreamClient(Endpoint("https", "localhost", provider.port))
        with pytest.raises(UpstreamUnreachable, match="not trusted"):
            await call(client)
        assert provider.seen == []


async def test_a_certificate_for_another_name_is_refused(trusting):
    async with tls_provider(trusting) as provider:
        client = UpstreamClient(Endpoint("https", "127.0.0.1", provider.port))
        with pytest.raises(UpstreamUnreachable, match="not trusted"):
            await call(client)
