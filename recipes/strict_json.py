"""JSON as recipes and kits are written in it: UTF-8, no key twice, nothing that cannot be printed.

Errors are in words of our own, so that nobody has to know the parser's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 32  # of lists and objects in each other; the formats need less than ten
MAX_DIGITS = 18  # more do not fit what reads the number
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@+-]{0,99}")
_SHOWN_OF_KEY = 60


def decode(data: bytes) -> Any:
    """What a JSON text says.

    Raises:
        ValueError: it is none, with what is wrong and where; or it holds half a character (a lone
            surrogate), a number of more than MAX_DIGITS digits or more than MAX_DEPTH levels.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    if text.startswith("\ufeff"):
        raise ValueError("not valid JSON: it begins with a byte order mark; save it without one")
    try:
        document = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_number, parse_int=_integer
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except json.JSONDecodeError as error:
        what = f"{error.msg[:1].lower()}{error.msg[1:]}"
        where = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"not valid JSON: {where}: {what}") from None
    _check_texts(document)
    return document


def below(path: str, key: str) -> str:
    """The JSON path of a member: `$.env.A`, or `$.env["a b"]` for a key that is no plain word."""
    if _PLAIN_KEY.fullmatch(key):
        return f"{path}.{key}"
    shown = key if len(key) <= _SHOWN_OF_KEY else f"{key[:_SHOWN_OF_KEY]}..."
    return f"{path}[{json.dumps(shown)}]"


def _check_texts(document: Any) -> None:
    waiting: list[tuple[str, Any, int]] = [("$", document, 1)]
    while waiting:
        path, value, depth = waiting.pop()
        if isinstance(value, str) and _SURROGATE.search(value):
            raise ValueError(
                f"{path}: half a character (a lone surrogate such as \\ud800); write it whole"
            )
        if not isinstance(value, dict | list):
            continue
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        waiting.extend((where, inner, depth + 1) for where, inner in _parts(path, value))


def _parts(path: str, value: dict[str, Any] | list[Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield f"{path}[{index}]", inner
        return
    for key, inner in value.items():
        where = below(path, key)
        yield f"{where} (a key)", key
        yield where, inner


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"not valid JSON: the key {key!r} is there twice")
        found[key] = value
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"not valid JSON: {text} is no JSON number")


def _integer(text: str) -> int:
    if len(digits := text.lstrip("-")) > MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits; at most {MAX_DIGITS} are read")
    return int(text)
