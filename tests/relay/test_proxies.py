"""The way out through a proxy of the network, and authorities of its own."""

from __future__ import annotations

import asyncio
import base64
import contextlib

import pytest

from relay.connection import UpstreamBroken, UpstreamTLSFailed, UpstreamUnreachable
from relay.endpoints import Endpoint
from relay.proxies import InvalidProxy, proxy_for
from relay.upstream import UpstreamClient
from tests.relay.certificates import server_context
from tests.relay.stand import Provider, free_port, joined, listening, plain, saying
from tests.relay.upstream_calls import call

HTTPS = Endpoint("https", "api.vendor.test", 443)
HTTP = Endpoint("http", "model.lan.test", 8080)
SECRET = "pa%40ss-w0rd"
LOGIN = base64.b64encode(b"me:pa@ss-w0rd").decode()


# -- which proxy ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("endpoint", "environ", "host"),
    [
        (HTTPS, {"HTTPS_PROXY": "http://p.test:3128"}, "p.test"),
        (HTTPS, {"https_proxy": "http://small.test:1", "HTTPS_PROXY": "http://p:1"}, "small.test"),
        (HTTPS, {"HTTP_PROXY": "http://p.test:3128"}, None),
        (HTTP, {"HTTP_PROXY": "p.test:3128"}, "p.test"),
        (HTTP, {"HTTPS_PROXY": "http://p.test:3128"}, None),
        (HTTPS, {"ALL_PROXY": "http://p.test"}, "p.test"),
        (HTTPS, {"all_proxy": "http://all.test", "HTTPS_PROXY": "http://p.test"}, "p.test"),
        (HTTPS, {"HTTPS_PROXY": ""}, None),
        (HTTPS, {}, None),
    ],
)
def test_the_usual_variables_name_the_proxy(endpoint, environ, host):
    proxy = proxy_for(endpoint, environ)
    assert (proxy.host if proxy else None) == host


@pytest.mark.parametrize(
    ("exempt", "direct"),
    [
        ("*", True),
        ("api.vendor.test", True),
        ("API.Vendor.Test", True),
        ("vendor.test", True),
        (".vendor.test", True),
        ("*.vendor.test", True),
        ("other.test, vendor.test", True),
        ("vendor.test:443", True),
        ("vendor.test:8443", False),
        ("endor.test", False),
        ("api.vendor.test.evil", False),
        ("10.0.0.0/8", False),
        ("", False),
        (",", False),
    ],
)
def test_no_proxy_names_what_is_reached_directly(exempt, direct):
    environ = {"HTTPS_PROXY": "http://p.test:3128", "NO_PROXY": exempt}
    assert (proxy_for(HTTPS, environ) is None) is direct


@pytest.mark.parametrize(
    ("host", "exempt", "direct"),
    [
        ("10.1.2.3", "10.0.0.0/8", True),
        ("10.1.2.3", "10.1.2.3", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("fd00::5", "fd00::/8", True),
        ("fd00::5", "[fd00::5]:443", True),
        ("fd00::5", "[fd00::5]:444", False),
        ("fd00::5", "10.0.0.0/8", False),
    ],
)
def test_no_proxy_may_name_addresses_and_networks(host, exempt, direct):
    environ = {"HTTPS_PROXY": "http://p.test:3128", "no_proxy": exempt}
    assert (proxy_for(Endpoint("https", host, 443), environ) is None) is direct


@pytest.mark.parametrize(
    "endpoint",
    [
        Endpoint("http", "localhost", 8080),
        Endpoint("https", "127.0.0.1", 8443),
        Endpoint("http", "::1", 8080),
        Endpoint.at_socket("/run/model.sock", "model.test"),
    ],
)
def test_this_machine_is_never_reached_through_a_proxy(endpoint):
    environ = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://p.test:3128")
    assert proxy_for(endpoint, environ) is None


@pytest.mark.parametrize(
    "value",
    [
        f"socks5://me:{SECRET}@p.test:1080",
        f"https://me:{SECRET}@p.test:443",
        f"http://me:{SECRET}@p.test:99999",
        f"http://me:{SECRET}@p.test/path",
        f"http://me:{SECRET}@",
        f"http://me:{SECRET}@p.test\r\nevil: 1",
    ],
)
def test_a_proxy_that_cannot_be_used_is_refused_by_its_variable_and_never_shown(value):
    with pytest.raises(InvalidProxy, match="HTTPS_PROXY") as refused:
        UpstreamClient(HTTPS, environ={"HTTPS_PROXY": value})
    assert "w0rd" not in str(refused.value)


def test_the_password_of_a_proxy_never_shows():
    proxy = proxy_for(HTTPS, {"HTTPS_PROXY": f"http://me:{SECRET}@p.test:3128"})
    assert proxy.headers == [(b"proxy-authorization", f"Basic {LOGIN}".encode())]
    for text in (repr(proxy), str(proxy), proxy.url):
        assert "w0rd" not in text
        assert LOGIN not in text


# -- through it ----------------------------------------------------------------------------------
class ConnectProxy:
    """Tunnels every CONNECT to one loopback port, or answers with `refusal`."""

    def __init__(self, port: int, refusal: bytes = b"", early: bytes = b"") -> None:
        self.port = port
        self.refusal = refusal
        self.early = early
        self.heads: list[str] = []

    async def __call__(self, reader, writer) -> None:
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"))
        if self.refusal:
            writer.write(self.refusal)
            await writer.drain()
            return
        inner = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n" + self.early)
        await joined(reader, writer, *inner)


@contextlib.asynccontextmanager
async def behind_a_proxy(directory, **options):
    """A TLS provider known by a name only its proxy can resolve, and a client that goes there."""
    provider = Provider(saying(plain(b"ok")))
    async with provider.running(ssl=server_context(directory)):
        proxy = ConnectProxy(provider.port, **options)
        async with listening(proxy) as port:
            environ = {"HTTPS_PROXY": f"http://me:{SECRET}@127.0.0.1:{port}"}
            client = UpstreamClient(HTTPS, environ=environ, connect_timeout_s=5)
            try:
                yield client, proxy, provider
            finally:
                await client.aclose()


@pytest.mark.anyio
async def test_an_https_upstream_is_reached_in_a_tunnel_that_is_kept_open(trusting):
    async with behind_a_proxy(trusting) as (client, proxy, provider):
        for _ in range(3):
            assert (await call(client))[2] == b"ok"
        assert len(proxy.heads) == 1
        assert proxy.heads[0].startswith("CONNECT api.vendor.test:443 HTTP/1.1\r\n")
        assert f"proxy-authorization: Basic {LOGIN}\r\n" in proxy.heads[0]
        assert provider.seen[0].target == "/v1/messages"
        assert provider.seen[0].values("proxy-authorization") == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 407 Who are you\r\nconnection: close\r\n\r\n", "password in HTTPS_PROXY"),
        (b"HTTP/1.1 403 No\r\ncontent-length: 2\r\n\r\nno", r"refused the connection \(403\)"),
        (b"HTTP/1.1 200 OK\r\n\r\nsurprise", "did not answer as one"),
        (b"SSH-2.0-thing\r\n\r\n", "did not answer as one"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"x" * 20_000, "did not answer as one"),
        (b"HTTP/1.1 200 OK\r\n", "did not answer as one"),
    ],
)
async def test_a_proxy_that_does_not_tunnel_is_named_and_nothing_is_sent(trusting, answer, words):
    async with behind_a_proxy(trusting, refusal=answer) as (client, proxy, provider):
        with pytest.raises(UpstreamUnreachable, match=words) as failed:
            await call(client)
        assert proxy.heads
        assert provider.seen == []
        assert "w0rd" not in str(failed.value)
        assert LOGIN not in str(failed.value)


@pytest.mark.anyio
async def test_a_proxy_that_never_answers_is_left_after_the_connect_timeout():
    async def hang(reader, writer):
        await asyncio.sleep(60)

    async with listening(hang) as port:
        environ = {"HTTPS_PROXY": f"http://127.0.0.1:{port}"}
        client = UpstreamClient(HTTPS, environ=environ, connect_timeout_s=0.2)
        with pytest.raises(UpstreamUnreachable, match=r"by the proxy .* within 0\.2 s"):
            await call(client)


@pytest.mark.anyio
@pytest.mark.parametrize("endpoint", [HTTPS, HTTP])
async def test_a_proxy_that_is_not_there_is_named(endpoint):
    environ = {"ALL_PROXY": f"http://me:{SECRET}@127.0.0.1:{free_port()}"}
    client = UpstreamClient(endpoint, environ=environ)
    with pytest.raises(UpstreamUnreachable, match=r"proxy .*127\.0\.0\.1.*refused") as failed:
        await call(client)
    assert "w0rd" not in str(failed.value)


@pytest.mark.anyio
async def test_a_plaintext_upstream_is_asked_for_in_absolute_form():
    provider = Provider(saying(plain(b"ok")))
    async with provider.running():
        environ = {"HTTP_PROXY": f"http://me:{SECRET}@127.0.0.1:{provider.port}"}
        client = UpstreamClient(HTTP, environ=environ)
        for _ in range(2):
            assert (await call(client))[2] == b"ok"
        assert client.opened == 1
        seen = provider.seen[1]
        assert seen.target == "http://model.lan.test:8080/v1/messages"
        assert seen.values("proxy-authorization") == [f"Basic {LOGIN}"]
        await client.aclose()


@pytest.mark.anyio
@pytest.mark.usefixtures("fresh_tls_context")
async def test_the_certificate_behind_a_tunnel_is_verified(certificate):
    async with behind_a_proxy(certificate) as (client, _, provider):
        with pytest.raises(UpstreamTLSFailed, match="not trusted"):
            await call(client)
        assert provider.seen == []


# -- authorities of its own ----------------------------------------------------------------------
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("variable", "name", "words"),
    [
        ("SSL_CERT_FILE", "missing.pem", "SSL_CERT_FILE names a file that does not exist"),
        ("SSL_CERT_FILE", "junk.pem", "SSL_CERT_FILE names a file that holds no certificate"),
        ("SSL_CERT_DIR", "missing", "SSL_CERT_DIR names a directory that does not exist"),
    ],
)
@pytest.mark.usefixtures("fresh_tls_context")
async def test_authorities_that_cannot_be_read_are_said(
    tmp_path, monkeypatch, variable, name, words
):
    (tmp_path / "junk.pem").write_text("no certificate")
    monkeypatch.setenv(variable, str(tmp_path / name))
    client = UpstreamClient(Endpoint("https", "127.0.0.1", free_port()))
    with pytest.raises(UpstreamTLSFailed, match=words):
        await call(client)


@pytest.mark.anyio
async def test_a_cut_in_the_tunnel_is_a_cut(trusting):
    async def vanish(seen, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
        await writer.drain()
        return True

    async with behind_a_proxy(trusting) as (client, _, provider):
        provider.answer = vanish
        with pytest.raises(UpstreamBroken):
            await call(client)
