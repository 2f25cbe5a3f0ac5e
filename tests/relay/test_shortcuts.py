"""What the relay does not do on every call, for speed, and what must hold all the same."""

from __future__ import annotations

import asyncio
import time

import pytest

from relay.connection import UpstreamSilent
from relay.judging import Body
from relay.protocols import dialect
from relay.spending import Ask
from relay.strict_json import NotStrict, read_object
from tests.pace import stretched
from tests.relay.stand import plain, request, saying, standing
from tests.relay.upstream_calls import call, calling

asynchronous = pytest.mark.anyio
LONG = '{"role":"user","content":"' + "x" * 20_000 + '"}'
SEARCH = '"tools":[{"type":"web_search_20250305"}]'


async def silent(seen, writer):
    await asyncio.sleep(60)


# -- connections and timers ------------------------------------------------------------------------
@asynchronous
async def test_a_client_that_sent_a_large_body_at_once_is_seen_to_leave():
    """A large body stops the reading; it must go on while the answer is waited for."""
    async with standing(silent) as stand:
        _, writer = await stand.connect()
        writer.write(request(body=b'{"x":"' + b"y" * 1_000_000 + b'"}'))
        await stand.provider.asked.wait()
        writer.transport.abort()
        record = await stand.record()
        assert "client left" in record.error


@asynchronous
async def test_a_client_connection_is_closed_when_unused_and_not_while_it_waits(monkeypatch):
    monkeypatch.setattr("relay.server.KEEP_ALIVE_S", 0.3)

    async def slow(seen, writer):
        await asyncio.sleep(0.7)
        writer.write(plain(b"{}"))

    async with standing(slow) as stand:
        reader, writer = await stand.connect()
        await asyncio.sleep(0.2)
        writer.write(request(close=False))
        assert (await reader.readuntil(b"{}")).startswith(b"HTTP/1.1 200 ")
        began = time.monotonic()
        async with asyncio.timeout(2):
            assert await reader.read() == b""
        assert time.monotonic() - began > 0.25
        writer.close()


@asynchronous
async def test_a_provider_that_falls_silent_on_a_used_connection_is_given_up_in_time():
    """The timer of the rest between two calls stays set; silence is counted from the second."""
    calls = 0

    async def answer(seen, writer):
        nonlocal calls
        calls += 1
        if calls < 3:
            writer.write(plain(b"ok"))
        else:
            await asyncio.sleep(60)

    async with calling(answer, idle_timeout_s=0.3) as client:
        await call(client)
        await asyncio.sleep(0.1)
        await call(client)
        began = time.monotonic()
        with pytest.raises(UpstreamSilent):
            await call(client)
        assert 0.28 < time.monotonic() - began < stretched(2)
        assert client.opened == 1


@asynchronous
async def test_a_connection_is_closed_after_its_rest_though_its_timer_was_set_before(monkeypatch):
    monkeypatch.setattr("relay.upstream._KEEP_PLAIN_S", 0.3)
    async with calling(saying(plain(b"ok")), idle_timeout_s=0.1) as client:
        for _ in range(3):
            await call(client)
            await asyncio.sleep(0.05)
        began = time.monotonic()
        async with asyncio.timeout(2):
            await client.provider.gone.wait()
        assert time.monotonic() - began > 0.15
        assert client.opened == 1


@asynchronous
async def test_what_follows_the_head_of_an_answer_to_head_is_no_body_and_ends_the_connection():
    async with calling(saying(plain(b"surplus"))) as client:
        assert (await call(client, b"", b"HEAD"))[2] == b""
        await call(client, b"", b"HEAD")
        assert client.opened == 2


@asynchronous
async def test_a_second_answer_in_one_piece_is_not_taken_for_more_of_the_first():
    async with calling(saying(plain(b"first") + plain(b"second"))) as client:
        assert (await call(client))[2] == b"first"
        assert (await call(client))[2] == b"first"
        assert client.opened == 2


# -- bodies ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":1}',
        '{"a":1,"b":2,"a":1}',
        '{"a" : 1,"a":1}',
        r'{"\u0061":1,"a":2}',
        r'{"a\n":1,"a\u000a":1}',
        r'{"\/":1,"/":1}',
        '{"é":1,"\\u00e9":1}',
    ],
)
def test_no_text_is_short_enough_to_hide_a_second_key(text):
    with pytest.raises(NotStrict, match="comes twice"):
        read_object(text.encode())


@pytest.mark.parametrize("text", [b'{"a":"\xff"}', b'{"a":"\xc3\xa9","b":"\xc3"}'])
def test_a_body_that_is_not_ascii_must_be_utf8(text):
    with pytest.raises(NotStrict, match="UTF-8"):
        read_object(text)


def test_one_look_with_a_limit_tells_what_is_there_afterwards():
    body = Body(b'{"model":"a","max_tokens":"many","n":3,"fallbacks":["b"]}')
    assert body.limit_output(dialect("openai-chat"), 50)
    assert body.names == ["a", "b"]
    assert body.output_bound(dialect("openai-chat")) == 50
    assert body.encoded() == b'{"model":"a","max_tokens":50,"n":1,"fallbacks":["b"]}'
    assert not body.limit_output(dialect("openai-chat"), 50)


def test_a_field_that_is_set_is_looked_at_again():
    body = Body(b'{"model":"a","max_tokens":5}')
    assert body.output_bound(dialect("openai-chat")) == 5
    body.set("max_tokens", 7)
    assert body.output_bound(dialect("openai-chat")) == 7


# -- what sets a price -----------------------------------------------------------------------------
@pytest.mark.parametrize("space", ["", " "])
@pytest.mark.parametrize("size", [1, 40])
def test_tools_are_found_before_and_after_a_conversation_of_any_length(size, space):
    conversation = f'"messages":{space}[' + ",".join([LONG] * size) + "]"
    for text in (f"{{{SEARCH},{conversation}}}", f"{{{conversation},{space}{SEARCH}}}"):
        assert Ask.of("m", "openai-chat", text.encode()).has_extras
    assert not Ask.of("m", "openai-chat", f"{{{conversation}}}".encode()).has_extras


def test_tools_that_stand_twice_are_found_in_a_long_request():
    text = f'{{{SEARCH},"messages":[{LONG}],"tools":[]}}'
    assert Ask.of("m", "openai-chat", text.encode()).has_extras


def test_tools_in_the_middle_of_a_long_responses_input_are_found():
    text = f'{{"input":[{LONG},{{"type":"additional_tools",{SEARCH}}}]}}'
    assert Ask.of("m", "openai-responses", text.encode()).has_extras


@pytest.mark.parametrize("setting", ['"service_tier":"priority"', '"speed" : "fast"'])
def test_a_dearer_service_is_found_beside_a_long_conversation(setting):
    text = f'{{"messages":[{LONG}],{setting}}}'
    assert Ask.of("m", "openai-chat", text.encode()).is_dearer


def test_a_conversation_that_was_searched_before_makes_no_call_dearer():
    said = '{"role":"assistant","content":[{"type":"web_search_result","speed":"fast"}]}'
    ask = Ask.of("m", "openai-chat", f'{{"messages":[{LONG},{said}]}}'.encode())
    assert (ask.has_extras, ask.is_dearer) == (False, False)
