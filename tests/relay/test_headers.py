"""Which headers cross the relay."""

from __future__ import annotations

import pytest

from relay.decoding import readable_encodings
from tests.relay.stand import KEY, OK, TOKEN, chunked, plain, request, saying, standing

pytestmark = pytest.mark.anyio


async def sent(*headers: str, provider: str = "anthropic", target: str = "/v1/messages"):
    async with standing(OK, provider) as stand:
        answer = await stand.raw(request(target, b"{}", *headers))
        assert answer.startswith(b"HTTP/1.1 200"), answer
        return stand.provider.seen[0]


async def test_the_key_takes_the_place_of_every_credential():
    seen = await sent(
        *[f"authorization: Bearer {TOKEN}", "api-key: a", f"x-goog-api-key: {TOKEN}"],
        *["cookie: c=d"],
    )
    assert seen.values("x-api-key") == [KEY]
    for name in ("authorization", "api-key", "x-goog-api-key", "cookie", "proxy-authorization"):
        assert seen.values(name) == []
    assert TOKEN not in str(seen.headers)


async def test_a_bearer_provider_gets_the_key_as_bearer():
    seen = await sent(f"authorization: Bearer {TOKEN}", provider="openai", target="/v1/responses")
    assert seen.values("authorization") == [f"Bearer {KEY}"]
    assert seen.values("x-api-key") == []


async def test_the_host_is_the_providers_whatever_the_client_says():
    async with standing(OK) as stand:
        await stand.raw(request(host="host: evil.example"))
        assert stand.provider.seen[0].values("host") == [f"127.0.0.1:{stand.provider.port}"]


async def test_headers_of_one_hop_and_those_connection_names_stay_behind():
    seen = await sent(
        "connection: keep-alive, x-private",
        "x-private: 1",
        "keep-alive: timeout=5",
        "te: trailers",
        "trailer: x-t",
        "proxy-connection: keep-alive",
        "proxy-authorization: Basic x",
        "x-http-method-override: DELETE",
        "x-original-url: /v1/files",
        "x-kept: yes",
    )
    assert seen.values("x-kept") == ["yes"]
    names = {name.lower() for name, _ in seen.headers}
    assert names == {
        "host", "x-kept", "accept-encoding", "x-api-key", "content-length",
    }  # fmt: skip


async def test_a_client_cannot_make_the_content_type_vanish():
    seen = await sent("connection: content-type, content-length", "content-type: application/json")
    assert seen.values("content-type") == ["application/json"]
    assert seen.values("content-length") == ["2"]


async def test_duplicate_headers_are_kept_in_their_order():
    seen = await sent("anthropic-beta: one", "anthropic-version: 2023-06-01", "Anthropic-Beta: two")
    assert seen.values("anthropic-beta") == ["one", "two"]
    assert seen.values("anthropic-version") == ["2023-06-01"]


@pytest.mark.parametrize(
    ("offered", "asked"),
    [
        (None, "identity"),
        ("gzip, deflate, br, zstd", "gzip, deflate, br, zstd"),
        ("zstd,gzip", "zstd, gzip"),
        ("gzip;q=0, br", "br"),
        ("gzip; q=0.0", "identity"),
        ("gzip;q=0.5", "gzip"),
        ("compress, xz", "identity"),
        ("*", "gzip"),
        ("*;q=0", "identity"),
        ("GZIP", "gzip"),
        ("", "identity"),
    ],
)
def test_no_encoding_is_asked_for_that_cannot_be_read(offered, asked):
    assert readable_encodings(offered.encode() if offered is not None else None) == asked.encode()


async def test_the_encodings_offered_are_narrowed_on_the_way():
    seen = await sent("accept-encoding: br;q=0, compress", "accept-encoding: zstd")
    assert seen.values("accept-encoding") == ["zstd"]


async def test_headers_of_the_answer_come_back_but_for_those_of_one_hop():
    answer = chunked(
        b"{}",
        headers=(
            "content-type: application/json",
            "request-id: r1",
            "x-two: a",
            "x-two: b",
            "set-cookie: secret=1",
            "connection: keep-alive, x-hop",
            "x-hop: 1",
            "keep-alive: timeout=9",
            "x-accel-buffering: yes",
        ),
    )
    async with standing(saying(answer)) as stand:
        response = await stand.post(json={})
        assert response.headers.get_list("x-two") == ["a", "b"]
        assert response.headers["request-id"] == "r1"
        assert response.headers["content-type"] == "application/json"
        assert response.headers["x-accel-buffering"] == "no"
        for name in ("set-cookie", "x-hop", "keep-alive", "server", "date"):
            assert name not in response.headers


async def test_one_answers_headers_never_show_in_the_next():
    number = 0

    async def answer(seen, writer):
        nonlocal number
        number += 1
        writer.write(plain(b"{}", f"x-number: {number}"))

    async with standing(answer) as stand:
        first, second = await stand.post(json={}), await stand.post(json={})
        assert stand.provider.connections == 1
        assert first.headers.get_list("x-number") == ["1"]
        assert second.headers.get_list("x-number") == ["2"]


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Again", "308 There"])
async def test_a_redirect_is_handed_back_and_never_followed(status):
    answer = plain(b"", "location: http://127.0.0.1:1/v1/messages", status=status)
    async with standing(saying(answer)) as stand:
        response = await stand.post(json={})
        assert response.status_code == int(status[:3])
        assert response.headers["location"] == "http://127.0.0.1:1/v1/messages"
        assert len(stand.provider.seen) == 1
