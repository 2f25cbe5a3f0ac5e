"""Random requests and answers: what crosses the relay is exactly what was judged.

What reaches the provider is read again by a parser that is not ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import json

import h11
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.relay.stand import KEY, OK, TOKEN, request, saying, saying_and_closing, standing

pytestmark = pytest.mark.anyio
FUZZ = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


def read_by_another_parser(raw: bytes) -> list[tuple[str, bytes]]:
    """Target and body of each request, as h11 reads them until it finds a fault."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    # It stops at a second Host, at any Upgrade and at two spaces, where the relay refuses or
    # cleans that request alone: the framing is sound.
    for ours, theirs in (
        (b"host: evil", b"x: y"),
        (b"upgrade: h2c", b"x: y"),
        (b"  HTTP", b" HTTP"),
    ):
        raw = raw.replace(ours, theirs)
    connection.receive_data(raw)
    found: list[tuple[str, bytes]] = []
    target, body = "", b""
    with contextlib.suppress(h11.RemoteProtocolError):
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Request):
                target, body = event.target.decode("latin-1"), b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                found.append((target, body))
                if connection.their_state is not h11.DONE:
                    break
                connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                connection.send(h11.EndOfMessage())
                if connection.our_state is not h11.DONE:
                    break
                connection.start_next_cycle()
            else:
                break
    return found


targets = st.sampled_from(
    [
        *["/v1/messages", "/v1/messages?beta=true", "/v1/models", "/v1/messages/count_tokens"],
        *["http://evil/v1/messages", "/v1/messages#x", "/v1//messages", "/v1/%6dessages", "*", ""],
        *["/v1/messages?beta=true&beta=1", "/v1/messages?key=x", "/v1/messages ", "\x00", "/é"],
    ]
)
bodies = st.sampled_from([b"", b"{}", b'{"model":"m"}', b"x" * 5000, b"0\r\n\r\nGET"])
framings = st.sampled_from(
    [
        *["length", "length", "length", "chunked", "chunked", "none", "both", "two lengths"],
        *["longer", "shorter", "junk", "chunked twice", "late chunked", "trailer", "bad chunk"],
    ]
)
extras = st.lists(
    st.sampled_from(
        [
            *["host: evil", "x-note: 1", "expect: 100-continue", "connection: keep-alive"],
            *["connection: content-length", "x-http-method-override: DELETE", "te: trailers"],
            *["content-length: 7", "transfer-encoding: chunked", "x: \x80\xff", "x:\ty\t"],
            *[" folded", "x-a : b", "upgrade: h2c", "content-encoding: gzip", "x-a: b\x0bc"],
            *["x-api-key: another", f"authorization: Bearer {TOKEN}", "cookie: a=b"],
        ]
    ),
    max_size=3,
)


@st.composite
def requests(draw) -> bytes:
    body, framing = draw(bodies), draw(framings)
    method = draw(st.sampled_from(["POST", "POST", "POST", "GET", "PUT", "HEAD", "get"]))
    version = draw(st.sampled_from(["1.1", "1.1", "1.1", "1.1", "1.0", "2.0"]))
    lines = [f"{method} {draw(targets)} HTTP/{version}", "host: relay", f"x-api-key: {TOKEN}"]
    chunks = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
    wire = body
    if framing in ("length", "both", "two lengths"):
        lines.append(f"content-length: {len(body)}")
    if framing in ("chunked", "both", "trailer", "bad chunk", "chunked twice"):
        lines.append("transfer-encoding: chunked")
        wire = chunks + b"0\r\n\r\n"
    if framing == "two lengths":
        lines.append(f"content-length: {len(body) + 1}")
    elif framing == "longer":
        lines.append(f"content-length: {len(body) + 3}")
    elif framing == "shorter":
        lines.append(f"content-length: {max(0, len(body) - 1)}")
    elif framing == "junk":
        lines.append(f"content-length: {draw(st.sampled_from(['x', '-1', '+2', '0x2', '1e1']))}")
    elif framing == "chunked twice":
        lines.append("transfer-encoding: chunked")
    elif framing == "late chunked":
        lines.append("transfer-encoding: gzip, chunked")
        wire = chunks + b"0\r\n\r\n"
    elif framing == "trailer":
        wire = chunks + b"0\r\nx-api-key: trailing\r\nhost: evil\r\n\r\n"
    elif framing == "bad chunk":
        wire = draw(
            st.sampled_from([b"zz\r\n", b"-1\r\n", b"5\nhello\n0\n\n", b"2;x\r\n{}\r\n0\r\n"])
        )
    lines += draw(extras)
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + wire


def bare(method: str = "POST", version: str = "1.1") -> bytes:
    head = f"{method} /v1/messages HTTP/{version}\r\nhost: relay\r\nx-api-key: {TOKEN}\r\n"
    return f"{head}content-length: 0\r\n\r\n".encode()


@FUZZ
@example(wire=[bare("HEAD"), bare(), bare(version="1.0")], cuts=[86])  # a held head of an answer
@given(wire=st.lists(requests(), min_size=1, max_size=3), cuts=st.lists(st.integers(1, 400)))
async def test_what_reaches_the_provider_is_what_another_parser_reads_in_the_request(wire, cuts):
    raw = b"".join(wire)
    async with standing(OK, body_timeout_s=0.03) as stand:
        reader, writer = await stand.connect()
        at = 0
        for cut in [*cuts[:4], len(raw)]:
            if writer.transport.is_closing():
                break
            writer.write(raw[at : at + cut])
            at += cut
            await asyncio.sleep(0)
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(0.08):
                await reader.read()
        writer.transport.abort()
        await asyncio.sleep(0)
        sent = [(seen.target, seen.body) for seen in stand.provider.seen]
        in_order = iter(read_by_another_parser(raw))
        assert all(each in in_order for each in sent), (sent, read_by_another_parser(raw))
        for seen in stand.provider.seen:
            assert (seen.method, seen.target.partition("?")[0]) in (
                ("POST", "/v1/messages"),
                ("POST", "/v1/messages/count_tokens"),
                ("GET", "/v1/models"),
            )
            assert seen.values("x-api-key") == [KEY]
            assert seen.values("host") == [f"127.0.0.1:{stand.provider.port}"]
            assert seen.values("transfer-encoding") == seen.values("cookie") == []
            assert len(seen.values("content-length")) == (1 if seen.method == "POST" else 0)
        # and the relay still serves
        assert (await stand.raw(request())).startswith(b"HTTP/1.1 200")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["model", "models", "max_tokens", "n", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
members = st.lists(
    st.tuples(
        st.sampled_from(
            ["model", "model", "Model", "models", "max_tokens", "mod\\u0065l", "messages", "stream"]
        ),
        st.one_of(
            json_values.map(json.dumps),
            st.sampled_from(
                ['"cheap"', '"dear"', "NaN", "1e999", '"\\ud800"', "01", "[", '{"a":1,"a":2}']
            ),
        ),
    ),
    max_size=5,
)


@FUZZ
@given(fields=members, junk=st.sampled_from([b"", b"", b"", b"\xef\xbb\xbf", b"\xff", b"x", b"{}"]))
async def test_a_judged_body_reads_the_same_to_everybody_and_names_only_what_is_allowed(
    fields, junk
):
    body = ("{" + ",".join(f'"{key}":{value}' for key, value in fields) + "}").encode() + junk
    async with standing(OK, allow_models=frozenset({"cheap"}), max_tokens_cap=100) as stand:
        answer = await stand.raw(request(body=body))
        status = int(answer[9:12])
        assert status in (200, 400, 403)
        assert len(stand.provider.seen) == (status == 200)
        for seen in stand.provider.seen:
            pairs = json.loads(seen.body, object_pairs_hook=list)
            names = [key for key, _ in pairs]
            assert len(names) == len(set(names))
            sent = json.loads(seen.body)
            assert sent["model"] == "cheap"
            assert 0 < sent["max_tokens"] <= 100
            assert b"dear" not in seen.body or "model" not in str(sent.get("models"))


@FUZZ
@given(
    pieces=st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.sampled_from(
                [
                    *[
                        b"HTTP/1.1 200 OK\r\n",
                        b"HTTP/1.1 100 Continue\r\n\r\n",
                        b"HTTP/1.1 204 N\r\n",
                    ],
                    *[b"HTTP/1.1 999 X\r\n", b"HTTP/1.1 101 S\r\nupgrade: x\r\n\r\n", b"HTTP/0.9"],
                    *[
                        b"content-length: 3\r\n",
                        b"content-length: 99\r\n",
                        b"\r\n",
                        b"3\r\nabc\r\n",
                    ],
                    *[
                        b"transfer-encoding: chunked\r\n",
                        b"content-encoding: gzip\r\n",
                        b"0\r\n\r\n",
                    ],
                    *[
                        b"content-type: text/event-stream\r\n",
                        b'data: {"usage":{"a":1}}\n',
                        b"\n\n",
                    ],
                ]
            ),
        ),
        max_size=7,
    ),
    close=st.booleans(),
)
async def test_whatever_a_provider_answers_the_client_gets_http_or_a_cut(pieces, close):
    wire = b"".join(pieces)
    answer = (saying_and_closing if close else saying)(wire)
    async with standing(answer, idle_timeout_s=0.1) as stand:
        got = await stand.raw(request(), timeout=5)
        client = h11.Connection(h11.CLIENT)
        client.send(h11.Request(method="POST", target="/", headers=[("host", "x")]))
        client.send(h11.EndOfMessage())
        client.receive_data(got)
        if got:
            response = client.next_event()
            assert isinstance(response, h11.Response), got
            assert 200 <= response.status_code <= 599
        record = await stand.record()
        assert record.ended_at is not None
        assert stand.ledger.in_flight == 0
