"""OpenAI Chat Completions, and the many servers that speak it.

A stream tells its usage in its last chunk, when asked to; earlier chunks may carry `null`, and
some servers repeat a running total in each. `prompt_tokens` holds the cached ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from relay.protocols.reading import Reading, count, detail, name, usage_object
from relay.records import Usage

# The older spelling counts too: some providers refuse a request that has both.
BOUND: tuple[tuple[str, ...], ...] = (("max_completion_tokens",), ("max_tokens",))

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


class _Document(msgspec.Struct):
    model: Any = None
    usage: msgspec.Raw = msgspec.Raw(b"")


_decoder = msgspec.json.Decoder(_Document)


def refusal(status: int, rule: str, message: str) -> dict[str, Any]:
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": rule}}


def read(document: bytes) -> Reading:
    chunk = _decoder.decode(document)
    return Reading(name(chunk.model), usage_object(chunk.usage))


def usage(raw: Mapping[str, Any]) -> Usage:
    return Usage(
        input_tokens=count(raw.get("prompt_tokens")),
        cache_read_tokens=detail(raw, "prompt_tokens_details", "cached_tokens"),
        cache_write_tokens=detail(raw, "prompt_tokens_details", "cache_write_tokens"),
        output_tokens=count(raw.get("completion_tokens")),
        reasoning_tokens=detail(raw, "completion_tokens_details", "reasoning_tokens"),
    )
