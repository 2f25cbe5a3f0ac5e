"""What passes as strict JSON is read in one way only, whoever reads it."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.strict_json import NotStrict, read_list, read_object, read_value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"a":1,"a":1}', "the key 'a' comes twice"),
        (b'{"a":1,"a":2}', "the key 'a' comes twice"),
        (b'{"a":12,"a":1}', "the key 'a' comes twice"),
        (b'{"a":1,"a":12}', "the key 'a' comes twice"),
        (b'{"a":{"b":1},"c":0,"a":{"b":2}}', "the key 'a' comes twice"),
        (b'{"model":"x","mo\\u0064el":"y"}', "the key 'model' comes twice"),
        (b'{"a":NaN}', "no JSON"),
        (b'{"a":Infinity}', "no JSON"),
        (b'{"a":-Infinity}', "no JSON"),
        (b'{"a":[1,]}', "no JSON"),
        (b'{"a":01}', "no JSON"),
        (b'{"a":1}{"a":2}', "no JSON"),
        (b"{a:1}", "no JSON"),
        (b"{'a':1}", "no JSON"),
        (b'\xef\xbb\xbf{"a":1}', "no JSON"),
        ('{"a":1}'.encode("utf-16"), "not UTF-8"),
        (b'{"a":"\xff"}', "not UTF-8"),
        (b'{"a":"\xc0\xaf"}', "not UTF-8"),
        (b'{"a":"\xed\xa0\x80"}', "not UTF-8"),
        (b'{"a":"\x01"}', "no JSON"),
        (b"[1]", "no JSON object"),
        (b'"a"', "no JSON object"),
        (b"null", "no JSON object"),
        (b"", "no JSON"),
        (b"model=a&n=1", "no JSON"),
        (b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested too deeply"),
    ],
)
def test_what_two_readers_may_read_differently_is_refused(text, words):
    with pytest.raises(NotStrict, match=words):
        read_object(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"a":{"b":1,"b":2}}', "the key 'b' comes twice"),
        (b'[{"b":1,"\\u0062":1}]', "the key 'b' comes twice"),
        (b"[1e999]", "too large"),
        (b"NaN", "NaN is no JSON"),
        (b"[" * 200_000 + b"]" * 200_000, "nested too deeply"),
        (b"[1", "no JSON"),
        (b"9" * 5000, "no JSON"),
    ],
)
def test_what_a_policy_looks_into_is_strict_to_the_last_level(text, words):
    with pytest.raises(NotStrict, match=words):
        read_value(text)


def test_what_is_no_list_is_none():
    with pytest.raises(NotStrict, match="no list"):
        read_list(b'{"a":1}')


SPACE = st.sampled_from(["", " ", "\n", "\t \r\n"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@st.composite
def written(draw):
    """The members of an object, and the object as somebody may write it."""
    pairs = draw(st.lists(st.tuples(st.text(max_size=3), VALUES), max_size=6))
    ascii_only = draw(st.booleans())

    def space() -> str:
        return draw(SPACE)

    members = [
        f"{space()}{json.dumps(key, ensure_ascii=ascii_only)}{space()}:{space()}"
        f"{json.dumps(value, ensure_ascii=ascii_only)}{space()}"
        for key, value in pairs
    ]
    inner = ",".join(members) or space()
    return pairs, f"{space()}{{{inner}}}{space()}".encode()


@settings(deadline=None)
@given(written())
def test_an_object_passes_exactly_when_each_key_comes_once(case):
    pairs, text = case
    if len(dict(pairs)) < len(pairs):
        with pytest.raises(NotStrict, match="comes twice"):
            read_object(text)
    else:
        members = read_object(text)
        assert {key: read_value(bytes(raw)) for key, raw in members.items()} == dict(pairs)


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_refused_in_words_or_read(text):
    for read in (read_object, read_value, read_list):
        with contextlib.suppress(NotStrict):
            read(text)
