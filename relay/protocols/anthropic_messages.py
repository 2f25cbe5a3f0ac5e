"""Anthropic Messages.

A stream tells input and cache counts in `message_start`, under `message.usage`, and the running
output count in `message_delta`, under `usage`. `input_tokens` leaves out what was read from or
written to the cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from relay.protocols.reading import Reading, count, detail, name, usage_object
from relay.records import Usage

BOUND: tuple[tuple[str, ...], ...] = (("max_tokens",),)

# The types its clients know; they decide by these whether a call is worth repeating.
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


class _Message(msgspec.Struct):
    model: Any = None
    usage: msgspec.Raw = msgspec.Raw(b"")


class _Document(msgspec.Struct):
    model: Any = None
    usage: msgspec.Raw = msgspec.Raw(b"")
    message: _Message | None = None


_decoder = msgspec.json.Decoder(_Document)


def refusal(status: int, rule: str, message: str) -> dict[str, Any]:
    kind = _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message, "rule": rule}}


def read(document: bytes) -> Reading:
    event = _decoder.decode(document)
    inner = event.message
    if inner is not None:
        return Reading(name(inner.model), usage_object(inner.usage), is_final=False)
    return Reading(name(event.model), usage_object(event.usage))


def usage(raw: Mapping[str, Any]) -> Usage:
    fresh = count(raw.get("input_tokens"))
    cache_read = count(raw.get("cache_read_input_tokens"))
    cache_write = count(raw.get("cache_creation_input_tokens"))
    hour_writes = detail(raw, "cache_creation", "ephemeral_1h_input_tokens")
    total = None if fresh is None else fresh + (cache_read or 0) + (cache_write or 0)
    return Usage(
        input_tokens=total,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        cache_write_1h_tokens=hour_writes,
        output_tokens=count(raw.get("output_tokens")),
        reasoning_tokens=detail(raw, "output_tokens_details", "thinking_tokens"),
    )
