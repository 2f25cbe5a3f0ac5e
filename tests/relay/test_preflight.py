"""What a provider says about a key before a run starts."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest

import relay
import relay.upstream
from relay.endpoints import Endpoint
from relay.preflight import check_key
from tests.relay.certificates import server_context
from tests.relay.stand import Provider, free_port, listening, plain, saying

pytestmark = pytest.mark.anyio
KEY = "sk-very-secret"


@contextlib.asynccontextmanager
async def asked(name, answer, **options):
    provider = Provider(answer)
    async with provider.running():
        credential = relay.Credential(KEY, "THE_KEY")
        upstream = Endpoint("http", "127.0.0.1", provider.port)
        found = await check_key(relay.get_provider(name), credential, upstream=upstream, **options)
        assert KEY not in found.text
        assert KEY not in repr(found)
        yield found, provider


def status(code: int, body=None) -> bytes:
    return plain(json.dumps(body or {}).encode(), status=f"{code} Whatever")


@pytest.mark.parametrize(
    ("name", "path", "header", "value"),
    [
        ("anthropic", "/v1/models", "x-api-key", KEY),
        ("openai", "/v1/models", "authorization", f"Bearer {KEY}"),
        ("openrouter", "/api/v1/key", "authorization", f"Bearer {KEY}"),
        ("gemini", "/v1beta/models", "x-goog-api-key", KEY),
    ],
)
async def test_each_provider_is_asked_once_what_only_a_good_key_is_told(name, path, header, value):
    async with asked(name, saying(status(200))) as (found, provider):
        assert (found.kind, found.passes, found.text) == ("ok", True, "")
        (seen,) = provider.seen
        assert (seen.method, seen.target, seen.body) == ("GET", path, b"")
        assert seen.values(header) == [value]
        assert seen.values("host") == [f"127.0.0.1:{provider.port}"]
        if name == "anthropic":
            assert seen.values("anthropic-version") == ["2023-06-01"]


@pytest.mark.parametrize(
    ("code", "kind", "passes"),
    [
        (401, "bad_key", False),
        (403, "bad_key", False),
        (402, "no_credit", False),
        (429, "rate_limited", False),
        (404, "odd", True),
        (500, "odd", True),
        (529, "odd", True),
    ],
)
async def test_a_status_is_told_apart_by_what_to_do_about_it(code, kind, passes):
    async with asked("anthropic", saying(status(code))) as (found, _):
        assert (found.kind, found.passes, found.status) == (kind, passes, code)
        assert "THE_KEY" in found.text
        assert "anthropic" in found.text


@pytest.mark.parametrize(
    ("name", "code", "body", "kind"),
    [
        ("gemini", 400, {"error": {"details": [{"reason": "API_KEY_INVALID"}]}}, "bad_key"),
        ("gemini", 400, {"error": {"details": [1, {"reason": []}]}}, "odd"),
        ("openai", 429, {"error": {"code": "insufficient_quota"}}, "no_credit"),
        ("openai", 429, {"error": {"code": "rate_limit_exceeded"}}, "rate_limited"),
        ("openai", 429, {"error": "insufficient_quota"}, "rate_limited"),
        ("openrouter", 200, {"data": {"limit_remaining": 0}}, "no_credit"),
        ("openrouter", 200, {"data": {"limit_remaining": -0.5}}, "no_credit"),
        ("openrouter", 200, {"data": {"limit_remaining": 0.5}}, "ok"),
        ("openrouter", 200, {"data": {"limit_remaining": None}}, "ok"),
        ("openrouter", 200, {"data": {"limit_remaining": False}}, "ok"),
        ("openrouter", 200, {"data": []}, "ok"),
        ("anthropic", 200, {"data": {"limit_remaining": 0}}, "ok"),
        ("anthropic", 200, [1], "ok"),
    ],
)
async def test_a_body_tells_what_a_status_does_not(name, code, body, kind):
    async with asked(name, saying(status(code, body))) as (found, _):
        assert found.kind == kind


async def test_a_redirect_is_not_followed():
    answer = plain(b"", "location: http://127.0.0.1:1/steal", status="307 Elsewhere")
    async with asked("openai", saying(answer)) as (found, provider):
        assert (found.kind, found.status) == ("odd", 307)
        assert len(provider.seen) == 1


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"[" * 100_000, b"x" * 300_000, b'{"error":' + b"9" * 5000 + b"}"]
)
async def test_a_body_that_makes_no_sense_changes_nothing(body):
    async with asked("openai", saying(plain(body))) as (found, _):
        assert found.kind == "ok"


async def test_nobody_there_is_unreachable():
    upstream = Endpoint("http", "127.0.0.1", free_port())
    found = await check_key(relay.get_provider("openai"), relay.Credential(KEY), upstream=upstream)
    assert (found.kind, found.passes) == ("unreachable", False)
    assert "refused" in found.text


async def test_silence_is_unreachable_within_the_time():
    async def hang(seen, writer):
        await asyncio.sleep(60)

    async with asked("openai", hang, timeout_s=0.2) as (found, _):
        assert found.kind == "unreachable"
        assert "0.2 s" in found.text


async def test_a_body_without_end_does_not_outlast_the_time():
    async def drip(seen, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"1\r\nx\r\n")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with asked("openai", drip, timeout_s=0.3) as (found, _):
        assert found.kind == "unreachable"


@pytest.mark.usefixtures("fresh_tls_context")
async def test_a_certificate_nobody_vouches_for_is_trouble_with_tls(certificate):
    provider = Provider(saying(status(200)))
    async with provider.running(ssl=server_context(certificate)):
        upstream = Endpoint("https", "localhost", provider.port)
        found = await check_key(
            relay.get_provider("openai"), relay.Credential(KEY), upstream=upstream
        )
    assert (found.kind, found.passes) == ("tls", False)
    assert "not trusted" in found.text
    assert provider.seen == []


async def test_it_goes_by_the_proxy_the_relay_would_use():
    provider = Provider(saying(status(200)))
    async with provider.running():
        found = await check_key(
            relay.get_provider("openai"),
            relay.Credential(KEY),
            upstream=Endpoint("http", "model.lan.test", 8080),
            environ={"HTTP_PROXY": f"http://me:hidden@127.0.0.1:{provider.port}"},
        )
        assert found.kind == "ok"
        assert provider.seen[0].target == "http://model.lan.test:8080/v1/models"


async def test_a_proxy_that_refuses_is_unreachable_and_its_password_hidden():
    async def refuse(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Who\r\n\r\n")
        await writer.drain()

    async with listening(refuse) as port:
        environ = {"HTTPS_PROXY": f"http://me:hidden@127.0.0.1:{port}"}
        found = await check_key(
            relay.get_provider("openai"), relay.Credential(KEY), environ=environ
        )
    assert found.kind == "unreachable"
    assert "407" in found.text
    assert "hidden" not in found.text


@pytest.mark.parametrize("name", ["openai-compat", "rehearsal"])
async def test_providers_without_such_a_question_are_not_asked(name):
    async with asked(name, saying(status(401))) as (found, provider):
        assert (found.kind, found.passes) == ("skipped", True)
        assert provider.seen == []


async def test_without_a_key_nobody_is_asked():
    assert (await check_key(relay.get_provider("openai"), None)).kind == "skipped"
