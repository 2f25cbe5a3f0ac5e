"""The scripted model's turn as Anthropic Messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from relay.rehearsal.script import Turn

USAGE_IN = {
    "input_tokens": 120,
    "cache_creation_input_tokens": 30,
    "cache_read_input_tokens": 250,
    "service_tier": "standard",
}
OUTPUT_TOKENS = 40


def document(turn: Turn, model: str, seed: str) -> dict[str, Any]:
    """The whole answer, for a request that does not stream."""
    content: list[dict[str, Any]] = [{"type": "text", "text": turn.text}]
    if turn.call is not None:
        content.append({**_tool_use(turn, seed), "input": dict(turn.call.arguments)})
    return {
        **_message(model, seed),
        "content": content,
        "stop_reason": _stop_reason(turn),
        "usage": {**USAGE_IN, "output_tokens": OUTPUT_TOKENS},
    }


def events(turn: Turn, model: str, seed: str) -> Iterator[dict[str, Any]]:
    """The events of a stream, in order."""
    started = {**_message(model, seed), "usage": {**USAGE_IN, "output_tokens": 1}}
    yield {"type": "message_start", "message": started}
    yield from _block(
        0,
        {"type": "text", "text": ""},
        [{"type": "text_delta", "text": text} for text in _halves(turn.text)],
    )
    if turn.call is not None:
        arguments = json.dumps(dict(turn.call.arguments))
        yield from _block(
            1,
            {**_tool_use(turn, seed), "input": {}},
            [{"type": "input_json_delta", "partial_json": part} for part in _halves(arguments)],
        )
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": _stop_reason(turn), "stop_sequence": None},
        "usage": {"output_tokens": OUTPUT_TOKENS},
    }
    yield {"type": "message_stop"}


def _message(model: str, seed: str) -> dict[str, Any]:
    return {
        "id": f"msg_{seed}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _tool_use(turn: Turn, seed: str) -> dict[str, Any]:
    name = turn.call.tool.name if turn.call else ""
    return {"type": "tool_use", "id": f"toolu_{seed}", "name": name}


def _block(
    index: int, opening: dict[str, Any], deltas: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    yield {"type": "content_block_start", "index": index, "content_block": opening}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _stop_reason(turn: Turn) -> str:
    return "tool_use" if turn.call else "end_turn"


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]
