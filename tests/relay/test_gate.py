"""Nothing reaches the provider but what a route allows, and the token comes before all else."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay.admission import Gate, Refusal
from relay.app import create_app
from relay.policy import Policy
from relay.providers import get_provider
from relay.records import Ledger
from tests.relay.stand import KEY, TOKEN, plain, request, saying, standing

pytestmark = pytest.mark.anyio
OK = saying(plain(b"{}"))


def status_of(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer
    return int(answer.split(b" ", 2)[1])


def body_of(answer: bytes) -> dict:
    return json.loads(answer.partition(b"\r\n\r\n")[2])


@pytest.mark.parametrize(
    ("target", "method"),
    [
        ("/v1/messages", "POST"),
        ("/v1/models", "GET"),
        ("/v1/files", "DELETE"),
        ("/api/hello", "HEAD"),
        ("http://evil.example/v1/messages", "POST"),
        ("/v1/../admin", "POST"),
        ("evil.example:443", "CONNECT"),
        ("*", "OPTIONS"),
    ],
)
async def test_without_the_token_every_request_gets_the_same_401(target, method):
    async with standing(OK) as stand:
        asked = request(target, b"", method=method).replace(TOKEN.encode(), b"guess")
        assert status_of(await stand.raw(asked)) == 401
        assert stand.provider.seen == []
        record = await stand.record()
        assert (record.refusal, record.status) == ("token", 401)
        assert (stand.ledger.refused, stand.ledger.relayed) == (1, 0)


@pytest.mark.parametrize(
    "header", ["host: evil.example", "upgrade: websocket", "content-length: 999999999"]
)
async def test_the_token_comes_before_every_other_rule(header):
    async with standing(OK) as stand:
        asked = request("/v1/messages", b"", header).replace(TOKEN.encode(), b"guess")
        assert status_of(await stand.prod(asked)) == 401


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"x-api-key: ",
        b"x-api-key: \xff\xfe",
        b"x-api-key: run-token-",
        b"x-api-key: run-token-1x",
        b"x-api-key: Bearer run-token-1",
        b"authorization: run-token-1",
        b"authorization: Basic run-token-1",
        b"authorization: Bearer",
        b"authorization: Bearer \xc3\xa9",
        b"api-key: run-token-1",
        b"cookie: run-token-1",
    ],
)
async def test_a_token_that_is_not_the_token_is_refused(header):
    async with standing(OK) as stand:
        asked = request().replace(b"x-api-key: run-token-1", header or b"x-none: 1")
        assert status_of(await stand.raw(asked)) == 401


@pytest.mark.parametrize(
    "headers",
    [
        ["x-api-key: run-token-1"],
        ["authorization: Bearer run-token-1"],
        ["Authorization: bEaReR run-token-1"],
        ["x-api-key: another", "authorization: Bearer run-token-1"],
        ["x-api-key: run-token-1", "authorization: Bearer another"],
    ],
)
async def test_messages_takes_the_token_in_either_header(headers):
    async with standing(OK) as stand:
        asked = request().replace(b"x-api-key: run-token-1", "\r\n".join(headers).encode())
        assert status_of(await stand.raw(asked)) == 200


async def test_a_bearer_provider_does_not_take_the_token_elsewhere():
    async with standing(OK, "openai") as stand:
        assert status_of(await stand.raw(request("/v1/responses"))) == 401


REFUSED = [
    ("/v1/files", "POST", 403, "path"),
    ("/", "POST", 403, "path"),
    ("/v1/messages/", "POST", 403, "path"),
    ("/V1/messages", "POST", 403, "path"),
    ("/v1/messages/batches", "POST", 403, "path"),
    ("/api/hello", "HEAD", 403, "path"),
    ("/v1/models", "DELETE", 405, "method"),
    ("/v1/models", "HEAD", 405, "method"),
    ("/v1/messages", "GET", 405, "method"),
    ("/v1/messages", "PUT", 405, "method"),
    ("http://evil.example/v1/messages", "POST", 400, "target"),
    ("https://api.anthropic.com/v1/messages", "POST", 400, "target"),
    ("//evil.example/v1/messages", "POST", 400, "target"),
    ("/v1/messages#/../files", "POST", 400, "target"),
    ("/v1/messages#fragment", "POST", 400, "target"),
    ("/v1/messages?beta=true#fragment", "POST", 400, "target"),
    ("/v1//messages", "POST", 400, "target"),
    ("/v1/./messages", "POST", 400, "target"),
    ("/v1/x/../messages", "POST", 400, "target"),
    ("/v1/%6dessages", "POST", 400, "target"),
    ("/v1/messages%3fbeta=true", "POST", 400, "target"),
    ("/v1\\messages", "POST", 400, "target"),
    ("/v1/messages;x=1", "POST", 400, "target"),
    ("*", "OPTIONS", 400, "target"),
    ("/v1/messages?model=big", "POST", 403, "query"),
    ("/v1/messages?beta=true&x=1", "POST", 403, "query"),
    ("/v1/models?beta=true", "GET", 403, "query"),
    ("/v1/messages?", "POST", 400, "target"),
    ("/v1/messages?beta=true&beta=false", "POST", 400, "target"),
    ("/v1/messages?b%65ta=true", "POST", 400, "target"),
    ("/v1/messages?beta=%00", "POST", 400, "target"),
    ("/v1/messages?beta=true?x", "POST", 400, "target"),
    ("/v1/messages?beta=true&", "POST", 400, "target"),
]


@pytest.mark.parametrize(("target", "method", "status", "rule"), REFUSED)
async def test_what_is_not_exactly_a_route_is_refused_by_name(target, method, status, rule):
    async with standing(OK) as stand:
        answer = await stand.raw(request(target, b"", method=method))
        assert status_of(answer) == status
        assert stand.provider.seen == []
        assert (await stand.record()).refusal == rule
        if method != "HEAD":
            assert body_of(answer)["error"]["rule"] == rule


@pytest.mark.parametrize("target", ["/v1/messages", "/v1/messages?beta=true", "/v1/messages?beta"])
async def test_what_is_a_route_is_sent_on_byte_for_byte(target):
    async with standing(OK) as stand:
        assert status_of(await stand.raw(request(target))) == 200
        assert [(s.method, s.target) for s in stand.provider.seen] == [("POST", target)]


async def test_count_tokens_takes_the_same_query():
    async with standing(OK) as stand:
        asked = request("/v1/messages/count_tokens?beta=true")
        assert status_of(await stand.raw(asked)) == 200


async def test_a_connect_request_opens_no_tunnel():
    async with standing(OK) as stand:
        answer = await stand.raw(request("evil.example:443", b"", method="CONNECT", close=False))
        assert status_of(answer) == 400
        assert (await stand.record()).refusal == "target"


@pytest.mark.parametrize("close", [True, False])
async def test_a_websocket_upgrade_is_answered_426_at_once_and_closed(close):
    async with standing(OK, "openai") as stand:
        asked = request(
            "/v1/responses",
            b"",
            "upgrade: websocket",
            "connection: Upgrade",
            "sec-websocket-version: 13",
            f"authorization: Bearer {TOKEN}",
            method="GET",
            close=close,
        )
        answer = await stand.raw(asked, timeout=1)
        assert status_of(answer) == 426
        assert b"\r\nconnection: close\r\n" in answer
        assert body_of(answer)["error"]["code"] == "upgrade"
        assert (await stand.record()).refusal == "upgrade"


async def test_a_request_has_exactly_one_host():
    async with standing(OK) as stand:
        two = await stand.raw(request("/v1/messages", b"{}", "host: evil.example"))
        none = await stand.raw(request(host="x-nothing: 1"))
        assert (status_of(two), status_of(none)) == (400, 400)
        assert stand.provider.seen == []
        assert [r.refusal for r in stand.records] == ["host", "host"]


@pytest.mark.parametrize(
    ("provider", "path", "keys"),
    [
        ("anthropic", "/v1/files", {"type", "error"}),
        ("openai", "/v1/files", {"error"}),
    ],
)
async def test_a_refusal_has_the_shape_of_the_callers_protocol(provider, path, keys):
    async with standing(OK, provider) as stand:
        answer = await stand.post(path, json={})
        assert answer.status_code == 403
        body = answer.json()
        assert set(body) == keys
        if provider == "anthropic":
            assert body["type"] == "error"
            assert body["error"]["type"] == "permission_error"
            assert "POST /v1/messages" in body["error"]["message"]
        else:
            assert body["error"]["code"] == "path"
            assert set(body["error"]) == {"message", "type", "param", "code"}
            assert "POST /v1/responses" in body["error"]["message"]
        assert answer.headers["x-should-retry"] == "false"


@pytest.mark.parametrize(("path", "has_type"), [("/v1/messages", True), ("/v1/responses", False)])
async def test_one_relay_of_several_protocols_answers_each_in_its_own(path, has_type):
    async with standing(OK, "rehearsal") as stand:
        answer = await stand.post(path, headers={"host": "a"}, params={"x": "1"}, json={})
        assert answer.status_code == 403
        assert ("type" in answer.json()) is has_type


async def test_a_connection_survives_a_refusal():
    async with standing(OK) as stand, stand.client() as client:
        headers = {"x-api-key": TOKEN}
        assert (
            await client.post("/v1/files", headers=headers, content=b"x" * 9000)
        ).status_code == 403
        assert (
            await client.post("/v1/messages", headers=headers, content=b"{}")
        ).status_code == 200


@pytest.mark.parametrize("framing", ["declared", "chunked"])
async def test_a_body_over_the_limit_is_refused_and_reaches_nobody(framing):
    async with standing(OK, max_body_bytes=1000) as stand:

        async def pieces():
            for _ in range(100):
                yield b"x" * 100

        content = b"x" * 10_000 if framing == "declared" else pieces()
        answer = await stand.post(content=content)
        assert answer.status_code == 413
        assert "1000 bytes" in answer.json()["error"]["message"]
        assert stand.provider.seen == []
        assert (await stand.record()).refusal == "body-size"
        assert (await stand.post(content=b"x" * 1000)).status_code == 200


async def test_large_bodies_together_cannot_fill_the_memory():
    async with standing(OK, max_body_bytes=1000, max_buffered_bytes=1500) as stand:
        for _ in range(5):  # what has passed counts no more, and does not count twice
            assert (await stand.post(content=b"x" * 900)).status_code == 200
        reader, writer = await stand.connect()
        writer.write(request(body=b"x" * 1000)[:-1])  # one call holds 999 bytes and waits
        await writer.drain()
        while stand.ledger.in_flight < 1:
            await stand.raw(request("/v1/files", b""))
        refused = await stand.post(content=b"x" * 900)
        assert (refused.status_code, refused.json()["error"]["rule"]) == (503, "buffer")
        writer.write(b"x")
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()
        assert (await stand.post(content=b"x" * 900)).status_code == 200


async def test_a_body_is_let_go_once_it_is_sent():
    go_on = asyncio.Event()

    async def answer(seen, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n")
        await writer.drain()
        await go_on.wait()
        writer.write(b"x")

    async with standing(answer, max_buffered_bytes=1000) as stand:
        streams = [await stand.connect() for _ in range(3)]
        for reader, writer in streams:  # each alone fits, all three together would not
            writer.write(request(body=b"y" * 900))
            await reader.readuntil(b"\r\n\r\n")
        go_on.set()
        for reader, writer in streams:
            assert await reader.read() == b"x"
            writer.close()


async def test_a_client_that_owes_its_body_is_not_waited_for():
    async with standing(OK, body_timeout_s=0.05) as stand:
        answer = await stand.raw(request(body=b"x" * 100)[:-1])
        assert status_of(answer) == 408
        assert stand.provider.seen == []


async def test_a_get_request_with_a_body_is_refused():
    async with standing(OK) as stand:
        answer = await stand.raw(request("/v1/models", b"{}", method="GET"))
        assert (status_of(answer), stand.provider.seen) == (400, [])


async def test_expect_continue_is_answered_only_when_the_body_is_wanted():
    async with standing(OK, max_body_bytes=10) as stand:
        head = request(body=b"", close=False)[:-2]
        good = head + b"expect: 100-continue\r\ncontent-length: 2\r\nconnection: close\r\n\r\n"
        reader, writer = await stand.connect()
        writer.write(good)
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"{}")
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()
        refused = await stand.raw(head + b"expect: 100-continue\r\ncontent-length: 11\r\n\r\n")
        assert status_of(refused) == 413
        assert not any("expect" in dict(seen.headers) for seen in stand.provider.seen)


SMUGGLING = [
    b"content-length: 2\r\ntransfer-encoding: chunked",
    b"content-length: 2\r\ncontent-length: 3",
    b"content-length: 2, 3",
    b"content-length: +2",
    b"content-length: -1",
    b"content-length: 0x2",
    b"content-length : 2",
    b"transfer-encoding: gzip, chunked",
    b"transfer-encoding: chunked, identity",
    b"transfer-encoding: identity",
    b"transfer-encoding: xchunked",
    b"transfer-encoding:\x0bchunked",
    b"x-a: b\r\n folded",
    b"x-a: b\rx-c: d",
    b"x-a: b\nx-c: d",
    b"x-a\x00b: c",
    b"x-a: b\x00c",
    b"x a: b",
    b": b",
]


@pytest.mark.parametrize("headers", SMUGGLING)
async def test_ambiguous_framing_and_malformed_headers_reach_nobody(headers):
    async with standing(OK) as stand:
        head = request(body=b"", close=False)[:-2] + headers + b"\r\nconnection: close\r\n\r\n"
        inner = request("/v1/models", b"", method="GET")
        answer = await stand.raw(head + b"0\r\n\r\n" + inner)
        assert status_of(answer) in (400, 413)
        assert stand.provider.seen == []


PRINTABLE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=30)


@given(target=st.one_of(PRINTABLE, PRINTABLE.map(lambda tail: "/v1/messages" + tail)))
def test_no_target_but_a_route_passes_the_gate(target):
    gate = Gate(get_provider("anthropic"), TOKEN)
    headers = [(b"host", b"relay"), (b"x-api-key", TOKEN.encode())]
    scope = {"method": "POST", "raw_target": target.encode()}
    try:
        admitted = gate.admit(scope, headers)
    except Refusal:
        return
    assert admitted.target == target.encode()
    assert target.partition("?")[0] in {route.path for route in get_provider("anthropic").routes}
    assert target.partition("?")[2].partition("=")[0] in ("", "beta")


NOISE = [
    *(b"\r\n", b"\n", b"\r", b" ", b":", b"\x00", b"#", b"?", b"/", b"%2f", b"0"),
    *(b"host: b\r\n", b"content-length: 5\r\n", b"transfer-encoding: chunked\r\n"),
    *(b"GET /x HTTP/1.1\r\n", b"upgrade: websocket\r\n", b"connection: upgrade\r\n"),
]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_whatever_a_client_sends_the_provider_sees_only_what_was_judged(data):
    """Random edits of a good request: the provider gets a clean one with the key, or nothing."""
    good = request("/v1/messages?beta=true", b'{"model":"m"}', "x-note: 1")
    raw = bytearray(good)
    noise = st.sampled_from(NOISE)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw)))
        raw[at : at + data.draw(st.integers(0, 2))] = data.draw(noise)
    async with standing(OK, body_timeout_s=0.02) as stand:
        answer = await stand.prod(bytes(raw) + b"\r\n\r\n")
        assert answer == b"" or status_of(answer) >= 200
        for seen in stand.provider.seen:
            assert seen.method == "POST"
            assert seen.target in (
                "/v1/messages",
                "/v1/messages?beta",
                "/v1/messages?beta=true",
            ) or (seen.target.startswith("/v1/messages?beta="))
            assert seen.values("x-api-key") == [KEY]
            assert len(seen.values("host")) == 1
            assert len(seen.values("content-length")) == 1
            assert seen.values("transfer-encoding") == []


def test_a_provider_that_needs_a_key_gets_no_relay_without_one():
    with pytest.raises(ValueError, match="needs a key"):
        create_app(Policy(get_provider("anthropic")), None, TOKEN, Ledger())


def test_a_relay_without_a_token_is_refused():
    with pytest.raises(ValueError, match="run token"):
        create_app(Policy(get_provider("rehearsal")), None, "", Ledger())
