"""OpenAI Responses.

A stream tells its usage in its last event, `response.completed` or `response.incomplete`, under
`response.usage`; earlier events carry `null` there. `input_tokens` holds the cached ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from relay.protocols.openai_chat import refusal
from relay.protocols.reading import Reading, count, detail, name, usage_object
from relay.records import Usage

__all__ = ["BOUND", "read", "refusal", "usage"]

BOUND: tuple[tuple[str, ...], ...] = (("max_output_tokens",),)


class _Response(msgspec.Struct):
    model: Any = None
    usage: msgspec.Raw = msgspec.Raw(b"")


class _Document(msgspec.Struct):
    model: Any = None
    usage: msgspec.Raw = msgspec.Raw(b"")
    response: _Response | None = None


_decoder = msgspec.json.Decoder(_Document)


def read(document: bytes) -> Reading:
    event = _decoder.decode(document)
    inner = event.response
    if inner is not None:
        return Reading(name(inner.model), usage_object(inner.usage))
    return Reading(name(event.model), usage_object(event.usage))


def usage(raw: Mapping[str, Any]) -> Usage:
    return Usage(
        input_tokens=count(raw.get("input_tokens")),
        cache_read_tokens=detail(raw, "input_tokens_details", "cached_tokens"),
        cache_write_tokens=detail(raw, "input_tokens_details", "cache_write_tokens"),
        output_tokens=count(raw.get("output_tokens")),
        reasoning_tokens=detail(raw, "output_tokens_details", "reasoning_tokens"),
    )
