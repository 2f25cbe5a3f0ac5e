"""The scripted model's turn as Google's generateContent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from relay.rehearsal.script import Turn

PATH = re.compile(
    r"/v1beta/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)",
)
USAGE = {
    "promptTokenCount": 400,
    "cachedContentTokenCount": 250,
    "candidatesTokenCount": 40,
    "thoughtsTokenCount": 4,
    "totalTokenCount": 444,
}
MODELS = {
    "models": [
        {
            "name": "models/rehearsal",
            "version": "1",
            "displayName": "Rehearsal",
            "inputTokenLimit": 1_000_000,
            "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }
    ]
}


def document(turn: Turn, model: str, seed: str) -> dict[str, Any]:
    """The whole answer, for a request that does not stream."""
    parts: list[dict[str, Any]] = [{"text": turn.text}]
    if turn.call is not None:
        parts.append(_call(turn))
    return _response(model, seed, parts, USAGE, finish="STOP")


def events(turn: Turn, model: str, seed: str) -> Iterator[dict[str, Any]]:
    """The events of a stream, in order: each a response with the counts so far."""
    half = len(turn.text) // 2
    begun = {"promptTokenCount": 400, "cachedContentTokenCount": 250, "totalTokenCount": 400}
    yield _response(model, seed, [{"text": turn.text[:half]}], begun)
    yield _response(model, seed, [{"text": turn.text[half:]}], {**USAGE, "candidatesTokenCount": 9})
    last = [_call(turn)] if turn.call is not None else [{"text": ""}]
    yield _response(model, seed, last, USAGE, finish="STOP")


def _response(
    model: str, seed: str, parts: list[dict[str, Any]], usage: dict[str, int], finish: str = ""
) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": model,
        "responseId": seed,
    }


def _call(turn: Turn) -> dict[str, Any]:
    call = turn.call
    name, arguments = (call.tool.name, dict(call.arguments)) if call else ("", {})
    return {"functionCall": {"name": name, "args": arguments}}
