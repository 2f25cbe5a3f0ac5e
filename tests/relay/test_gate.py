"""Nothing reaches the provider but what a route allows, and the token comes before all else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.admission import Gate, Refusal
from relay.app import create_app
from relay.policy import Policy
from relay.providers import get_provider
from relay.records import Ledger
from tests.relay.stand import OK, TOKEN, request, standing, status_of

pytestmark = pytest.mark.anyio


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
        ["x-api-key: run-token-1", "authorization: Bearer run-token-1"],
        ["x-api-key: ", "authorization: Bearer run-token-1"],
    ],
)
async def test_messages_takes_the_token_in_either_header(headers):
    async with standing(OK) as stand:
        asked = request().replace(b"x-api-key: run-token-1", "\r\n".join(headers).encode())
        assert status_of(await stand.raw(asked)) == 200


@pytest.mark.parametrize(
    "headers",
    [
        ["authorization: Bearer run-token-1", "authorization: Bearer another"],
        ["authorization: Bearer another", "authorization: Bearer run-token-1"],
        ["authorization: Bearer run-token-1", "authorization: Basic run-token-1"],
        ["x-api-key: run-token-1", "x-api-key: another"],
        ["x-api-key: another", "authorization: Bearer run-token-1"],
        ["x-api-key: run-token-1", "authorization: Bearer another"],
        ["x-api-key: run-token-1", "x-goog-api-key: another"],
    ],
)
@pytest.mark.parametrize("target", ["/v1/messages", "/v1/messages/../files"])
async def test_a_token_beside_another_credential_is_refused_before_all_else(headers, target):
    async with standing(OK) as stand:
        asked = request(target).replace(b"x-api-key: run-token-1", "\r\n".join(headers).encode())
        assert status_of(await stand.raw(asked)) == 401
        assert stand.provider.seen == []
        assert (await stand.record()).refusal == "token"


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


def test_a_provider_that_needs_a_key_gets_no_relay_without_one():
    with pytest.raises(ValueError, match="needs a key"):
        create_app(Policy(get_provider("anthropic")), None, TOKEN, Ledger())


def test_a_relay_without_a_token_is_refused():
    with pytest.raises(ValueError, match="run token"):
        create_app(Policy(get_provider("rehearsal")), None, "", Ledger())
