"""JSON that can be read in one way only.

A policy that reads a body in one way and a provider that reads it in another is no policy. What
passes here is UTF-8, has no key twice in an object that is looked at, no NaN or infinity, and is
not nested deeper than the parser goes. msgspec does the work; it is the duplicate keys that it
cannot be asked about.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any, NoReturn

import msgspec

_KEY = re.compile(rb'[ \t\r\n]*("(?:[^"\\]|\\.)*")[ \t\r\n]*:[ \t\r\n]*')
_AFTER_VALUE = re.compile(rb"[ \t\r\n]*([,}])")
_START = re.compile(rb"[ \t\r\n]*\{")

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list = msgspec.json.Decoder(list[msgspec.Raw])
_string = msgspec.json.Decoder(str)


class NotStrict(ValueError):
    """JSON that is none, or that two readers may read differently. The text says which."""


def read_object(text: bytes) -> dict[str, msgspec.Raw]:
    """The members of a JSON object, their values left as they are, each key once.

    Raises:
        NotStrict: it is not UTF-8, no JSON object, or has a key twice.
    """
    try:
        if not text.isascii():
            text.decode()
        members = _object.decode(text)
    except UnicodeDecodeError:
        raise NotStrict("it is not UTF-8") from None
    except msgspec.ValidationError:
        raise NotStrict("it is no JSON object") from None
    except msgspec.MsgspecError as error:
        raise NotStrict(f"it is no JSON: {_short(error)}") from None
    except RecursionError:
        raise NotStrict("it is nested too deeply") from None
    _refuse_duplicates(text, members)
    return members


def read_list(text: bytes) -> list[bytes]:
    """The items of a JSON list that is part of a document `read_object` took.

    Raises:
        NotStrict: it is no list.
    """
    try:
        return [bytes(item) for item in _list.decode(text)]
    except (msgspec.MsgspecError, RecursionError):
        raise NotStrict("it is no list") from None


def read_value(text: bytes) -> Any:
    """A JSON value as Python objects, each key of each object once.

    Raises:
        NotStrict: a key comes twice, or a number is none that both sides would read alike.
    """
    try:
        return _decoded(text.decode())
    except NotStrict:
        raise
    except RecursionError:
        raise NotStrict("it is nested too deeply") from None
    except ValueError as error:
        raise NotStrict(f"it is no JSON: {_short(error)}") from None


def _refuse_duplicates(text: bytes, members: dict[str, msgspec.Raw]) -> None:
    """Walk the object's keys, stepping over each value by what the decoder took for it.

    The decoder keeps the last value of a key. Where the text has another one, or the key was seen,
    there are two. The text is known to be well-formed, so a mismatch can mean nothing else.
    """
    keys = msgspec.json.encode(list(members))
    if len(keys) + sum(1 + memoryview(raw).nbytes for raw in members.values()) == len(text):
        return  # the shortest text that has these members has room for no other
    seen: set[str] = set()
    start = _START.match(text)
    at = start.end() if start else 0
    while members:
        key = _KEY.match(text, at)
        if key is None:
            raise NotStrict("a key comes twice")
        name = _string.decode(key[1])
        value = bytes(members[name])
        if name in seen or not text.startswith(value, key.end()):
            raise NotStrict(f"the key {name[:40]!r} comes twice")
        seen.add(name)
        end = _AFTER_VALUE.match(text, key.end() + len(value))
        if end is None:
            raise NotStrict(f"the key {name[:40]!r} comes twice")
        if end[1] == b"}":
            return
        at = end.end()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise NotStrict(f"the key {twice[:40]!r} comes twice")
    return members


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise NotStrict("a number is too large")
    return number


def _no_constant(text: str) -> NoReturn:
    raise NotStrict(f"{text} is no JSON")


def _decoded(text: str) -> Any:
    try:
        value, end = _value.raw_decode(text)
    except json.JSONDecodeError:
        end = -1
    # What stands alone needs no search for the white space around it.
    return value if end == len(text) else _value.decode(text)


# Made once: `json.loads` makes one at each call, and costs most of reading a small value.
_value = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_constant
)


def _short(error: Exception) -> str:
    return str(error).removeprefix("JSON is malformed: ")[:100]
