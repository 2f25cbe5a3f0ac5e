"""What a call used, read out of its answer: every protocol, every framing, nothing made up."""

from __future__ import annotations

import gzip
import itertools
import json
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import relay.meter
from relay.meter import Meter
from relay.records import Usage
from tests.relay.stand import sse

MESSAGES = [
    {
        "type": "message_start",
        "message": {
            "model": "claude-x",
            "usage": {
                "input_tokens": 11,
                "cache_creation_input_tokens": 22,
                "cache_read_input_tokens": 33,
                "output_tokens": 1,
            },
        },
    },
    {
        "type": "content_block_delta",
        "delta": {"text": 'they said "usage": {"output_tokens": 9999}'},
    },
    {"type": "message_delta", "usage": {"output_tokens": 20}},
    {"type": "message_delta", "usage": {"output_tokens": 44}},
    {"type": "message_stop"},
]
MESSAGES_USAGE = Usage(
    input_tokens=66, cache_read_tokens=33, cache_write_tokens=22, output_tokens=44
)
CHAT = [
    {"model": "gpt-x", "choices": [{"delta": {"content": "a"}}], "usage": None},
    {"model": "gpt-x", "choices": [{"delta": {"content": 'b "usage" c'}}], "usage": None},
    {
        "model": "gpt-x",
        "choices": [],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 66,
            "prompt_tokens_details": {"cached_tokens": 40},
            "completion_tokens_details": {"reasoning_tokens": 6},
            "cost": 0.0123,
        },
    },
]
CHAT_USAGE = Usage(input_tokens=100, cache_read_tokens=40, output_tokens=66, reasoning_tokens=6)
RESPONSES = [
    {"type": "response.created", "response": {"model": "gpt-y", "usage": None}},
    {"type": "response.output_text.delta", "delta": "x"},
    {
        "type": "response.completed",
        "response": {
            "model": "gpt-y",
            "output": [],
            "usage": {
                "input_tokens": 110,
                "input_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 4},
                "output_tokens": 55,
                "output_tokens_details": {"reasoning_tokens": 5},
            },
        },
    },
]
RESPONSES_USAGE = Usage(
    input_tokens=110,
    cache_read_tokens=30,
    cache_write_tokens=4,
    output_tokens=55,
    reasoning_tokens=5,
)
STREAMS = {
    "anthropic-messages": (MESSAGES, MESSAGES_USAGE, "claude-x"),
    "openai-chat": (CHAT, CHAT_USAGE, "gpt-x"),
    "openai-responses": (RESPONSES, RESPONSES_USAGE, "gpt-y"),
}
ENCODERS = {
    "": bytes,
    "identity": bytes,
    "gzip": gzip.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
    "deflate": zlib.compress,
}


def measure(protocol, pieces, content_type="text/event-stream; charset=utf-8", encoding=""):
    meter = Meter(protocol, content_type.encode(), encoding.encode())
    for piece in pieces:
        meter.feed(piece)
    meter.finish()
    return meter


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


protocols = pytest.mark.parametrize("protocol", list(STREAMS))


@protocols
@pytest.mark.parametrize("encoding", list(ENCODERS))
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("space", [" ", ""], ids=["space", "no-space"])
def test_a_stream_tells_its_usage_in_any_encoding_and_framing(protocol, encoding, newline, space):
    events, usage, model = STREAMS[protocol]
    wire = ENCODERS[encoding](sse(*events, newline=newline, space=space))
    meter = measure(protocol, [wire], encoding=encoding)
    assert (meter.usage, meter.model) == (usage, model)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
@protocols
def test_a_stream_may_be_cut_at_any_byte(protocol, data):
    events, usage, model = STREAMS[protocol]
    encoding = data.draw(st.sampled_from(list(ENCODERS)))
    newline = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    wire = ENCODERS[encoding](sse(*events, newline=newline))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=20)))
    edges = [0, *cuts, len(wire)]
    pieces = [wire[a:b] for a, b in itertools.pairwise(edges)]
    meter = measure(protocol, pieces, encoding=encoding)
    assert (meter.usage, meter.model) == (usage, model)


@protocols
def test_byte_by_byte_is_the_same_as_at_once(protocol):
    events, usage, model = STREAMS[protocol]
    wire = sse(*events)
    meter = measure(protocol, [wire[i : i + 1] for i in range(len(wire))])
    assert (meter.usage, meter.model) == (usage, model)


DOCUMENTS = {
    "anthropic-messages": (
        {"model": "claude-x", "usage": {**MESSAGES[0]["message"]["usage"], "output_tokens": 44}},
        MESSAGES_USAGE,
    ),
    "openai-chat": ({"model": "gpt-x", "usage": CHAT[2]["usage"]}, CHAT_USAGE),
    "openai-responses": (RESPONSES[2]["response"], RESPONSES_USAGE),
}


@protocols
@pytest.mark.parametrize("encoding", list(ENCODERS))
def test_an_answer_that_does_not_stream_tells_its_usage(protocol, encoding):
    document, usage = DOCUMENTS[protocol]
    wire = ENCODERS[encoding](json.dumps(document, indent=1).encode())
    pieces = [wire[i : i + 9] for i in range(0, len(wire), 9)]
    meter = measure(protocol, pieces, "application/json", encoding)
    assert meter.usage == usage
    assert meter.model == document["model"]


@protocols
def test_a_document_of_a_megabyte_is_read_whole(protocol):
    document, usage = DOCUMENTS[protocol]
    wire = json.dumps({**document, "text": 'x"usage":{"}' * 100_000}).encode()
    assert measure(protocol, [wire], "application/json").usage == usage


@protocols
@pytest.mark.parametrize("place", ["at the end", "before the end"])
def test_of_a_document_of_any_size_the_end_is_read(protocol, place, monkeypatch):
    monkeypatch.setattr(relay.meter, "MAX_DOCUMENT_BYTES", 50_000)
    monkeypatch.setattr(relay.meter, "_SEARCHED_END", 5_000)
    document, usage = DOCUMENTS[protocol]
    tail = {"text": "y" * 1000, "tools": {"usage": {"type": "object"}}}
    whole = {"filler": "x" * 200_000, **document, **({} if place == "at the end" else tail)}
    wire = json.dumps(whole).encode()
    pieces = [wire[i : i + 4096] for i in range(0, len(wire), 4096)]
    assert measure(protocol, pieces, "application/json").usage == usage


def test_running_totals_are_not_summed():
    chunks = [{"usage": {"prompt_tokens": 5, "completion_tokens": n}} for n in (1, 2, 3, 7)]
    assert measure("openai-chat", [sse(*chunks)]).usage == Usage(input_tokens=5, output_tokens=7)


def test_a_later_report_that_knows_less_takes_nothing_away():
    events = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}},
        {"type": "message_delta", "usage": {"input_tokens": None, "output_tokens": 5}},
        {"type": "message_delta", "usage": {"input_tokens": 0, "output_tokens": 6}},
    ]
    usage = measure("anthropic-messages", [sse(*events)]).usage
    assert (usage.input_tokens, usage.output_tokens) == (9, 6)


def test_input_that_is_only_told_at_the_end_is_counted():
    events = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 0, "output_tokens": 0}}},
        {"type": "message_delta", "usage": {"input_tokens": 9, "output_tokens": 6}},
    ]
    usage = measure("anthropic-messages", [sse(*events)]).usage
    assert (usage.input_tokens, usage.output_tokens) == (9, 6)


def test_an_incomplete_response_is_counted_too():
    event = {"type": "response.incomplete", "response": RESPONSES[2]["response"]}
    assert measure("openai-responses", [sse(event)]).usage == RESPONSES_USAGE


def test_a_last_event_without_its_newline_is_read():
    assert measure("openai-chat", [sse(*CHAT).rstrip()]).usage == CHAT_USAGE


def test_comments_pings_and_done_say_nothing():
    wire = b": keep-alive\n\nevent: ping\ndata: {}\n\n" + sse(*CHAT) + b"data: [DONE]\n\n"
    assert measure("openai-chat", [wire]).usage == CHAT_USAGE


def test_the_raw_object_is_kept_as_the_provider_wrote_it():
    assert measure("openai-chat", [sse(*CHAT)]).raw == CHAT[2]["usage"]


@pytest.mark.parametrize(
    ("cost", "expected"),
    [(0.5, 0.5), (0, 0.0), (3, 3.0), (-1, None), (True, None), ("1", None), (None, None)],
)
def test_a_reported_cost_is_a_sum_of_money_or_nothing(cost, expected):
    chunk = {"usage": {"prompt_tokens": 1, "cost": cost}}
    assert measure("openai-chat", [sse(chunk)]).reported_cost_usd == expected


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1e999"])
def test_a_cost_that_is_no_number_spoils_the_reading_not_the_meter(text):
    wire = b'data: {"usage":{"prompt_tokens":1,"cost":' + text.encode() + b"}}\n\n"
    assert measure("openai-chat", [wire]).reported_cost_usd is None


@pytest.mark.parametrize("value", [-1, True, "7", 1.5, None, [], {}, 2**60, 1e30])
def test_what_is_no_count_is_unknown_and_never_zero(value):
    chunk = {"usage": {"prompt_tokens": value, "completion_tokens": 3}}
    assert measure("openai-chat", [sse(chunk)]).usage == Usage(output_tokens=3)


@pytest.mark.parametrize(
    "wire",
    [
        b"",
        b"data:\n\n",
        b"data: {\n\n",
        b'data: {"usage":\n\n',
        b'data: {"usage":7}\n\n',
        b'data: {"usage":[]}\n\n',
        b'data: {"usage":{}}\n\n',
        b'data: {"usage":null}\n\n',
        b'data: [{"usage":{"prompt_tokens":1}}]\n\n',
        b'data: {"usage":{"prompt_tokens":"\xff"}}\n\n',
        b'data: {"message":7,"response":7,"usage":null}\n\n',
        b'data: {"usage":' + b'{"a":' * 100_000,
        b'data: {"usage":{"prompt_tokens":1,"x":"' + b"y" * 20_000 + b'"}}\n\n',
        b'data: {"usage":{"prompt_tokens":1,"x":' + b'{"a":' * 90 + b"1" + b"}" * 90 + b"}}\n\n",
        b"\xff\xfe\x00",
        b'{"usage": {"prompt_tokens": 1}}',
    ],
)
@protocols
def test_what_cannot_be_read_is_not_reported(protocol, wire):
    meter = measure(protocol, [wire])
    assert meter.usage is None
    assert meter.raw == {}


@settings(max_examples=200, deadline=None)
@given(wire=st.binary(max_size=400), encoding=st.sampled_from([*ENCODERS, "gzip, br", "what"]))
def test_no_bytes_make_the_meter_raise(wire, encoding):
    for protocol in STREAMS:
        for content_type in ("text/event-stream", "application/json", ""):
            measure(protocol, [b'data: {"usage":', wire, b"\n"], content_type, encoding)
            measure(protocol, [wire], content_type, encoding)


def test_raw_deflate_is_read_as_well():
    wire = raw_deflate(sse(*CHAT))
    assert measure("openai-chat", [wire], encoding="deflate").usage == CHAT_USAGE


def test_two_encodings_are_undone_in_reverse():
    wire = brotli.compress(gzip.compress(sse(*CHAT)))
    assert measure("openai-chat", [wire], encoding="gzip, br").usage == CHAT_USAGE


def test_gzip_members_may_follow_one_another():
    wire = b"".join(gzip.compress(sse(event)) for event in CHAT)
    assert measure("openai-chat", [wire], encoding="gzip").usage == CHAT_USAGE


def test_a_damaged_stream_keeps_what_was_read_before():
    packed = gzip.compress(sse(*CHAT) + b"x" * 100_000)
    whole = zlib.compressobj(wbits=31)
    start = whole.compress(sse(*CHAT)) + whole.flush(zlib.Z_SYNC_FLUSH)
    assert measure("openai-chat", [start, b"\xff" * 50], encoding="gzip").usage == CHAT_USAGE
    assert measure("openai-chat", [packed[:40]], encoding="gzip").usage is None


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
def test_a_decompression_bomb_ends_the_looking_not_the_process(encoding, monkeypatch):
    monkeypatch.setattr("relay.decoding.MAX_DECODED_BYTES", 1_000_000)
    bomb = ENCODERS[encoding](b"\n" * 30_000_000 + sse(*CHAT))
    meter = measure("openai-chat", [bomb, b"x"], encoding=encoding)
    assert meter.usage is None


def test_an_endless_line_is_given_up_and_its_memory_freed(monkeypatch):
    monkeypatch.setattr(relay.meter, "MAX_LINE_BYTES", 10_000)
    meter = Meter("openai-chat", b"text/event-stream", b"")
    for _ in range(100):
        meter.feed(b"x" * 1000)
        assert len(meter._rest) <= 11_000
    meter.feed(b"\n" + sse(*CHAT))
    meter.finish()
    assert meter.usage is None
