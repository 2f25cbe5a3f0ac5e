"""Google's Gemini API: generateContent and streamGenerateContent.

The model stands in the path. Each event of a stream is a whole response with the counts so far,
under `usageMetadata`; without `alt=sse` the stream is one JSON array of them. `promptTokenCount`
holds the cached tokens, `candidatesTokenCount` leaves out those of thinking. Requests may spell
their fields in camel case or with underscores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from relay.protocols.reading import Reading, count, name, usage_object
from relay.records import Usage

BOUND: tuple[tuple[str, ...], ...] = (
    ("generationConfig", "maxOutputTokens"),
    ("generationConfig", "max_output_tokens"),
    ("generation_config", "max_output_tokens"),
    ("generation_config", "maxOutputTokens"),
)

_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "FAILED_PRECONDITION",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    504: "DEADLINE_EXCEEDED",
}


class _Candidate(msgspec.Struct):
    finish: Any = msgspec.field(default=None, name="finishReason")


class _Document(msgspec.Struct):
    model: Any = msgspec.field(default=None, name="modelVersion")
    usage: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="usageMetadata")
    candidates: list[_Candidate] | None = None


_decoder = msgspec.json.Decoder(_Document | list[_Document])


def refusal(status: int, rule: str, message: str) -> dict[str, Any]:
    kind = _STATUSES.get(status, "UNAVAILABLE" if status >= 500 else "INVALID_ARGUMENT")
    # The clients look for a reason in details of this type.
    reason = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": rule,
        "domain": "sanduk",
    }
    return {"error": {"code": status, "message": message, "status": kind, "details": [reason]}}


def read(document: bytes) -> Reading:
    decoded = _decoder.decode(document)
    events = decoded if isinstance(decoded, list) else [decoded]
    model, usage, is_final = "", None, False
    for event in events:
        model = model or name(event.model)
        usage = usage_object(event.usage) or usage
        # No candidate at all is what a blocked prompt gets: there is nothing to follow.
        is_final = is_final or not event.candidates or any(c.finish for c in event.candidates)
    return Reading(model, usage, is_final=is_final)


def usage(raw: Mapping[str, Any]) -> Usage:
    answer, thoughts = count(raw.get("candidatesTokenCount")), count(raw.get("thoughtsTokenCount"))
    return Usage(
        input_tokens=_sum(
            count(raw.get("promptTokenCount")), count(raw.get("toolUsePromptTokenCount"))
        ),
        cache_read_tokens=count(raw.get("cachedContentTokenCount")),
        output_tokens=_sum(answer, thoughts),
        reasoning_tokens=thoughts,
    )


def _sum(*counts: int | None) -> int | None:
    """What is known of a total, or None when nothing is."""
    known = [each for each in counts if each is not None]
    return sum(known) if known else None
