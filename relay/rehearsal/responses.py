"""The scripted model's turn as OpenAI Responses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from relay.rehearsal.chat import CREATED
from relay.rehearsal.script import ToolCall, Turn

USAGE = {
    "input_tokens": 400,
    "input_tokens_details": {"cached_tokens": 250, "cache_write_tokens": 0},
    "output_tokens": 44,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 444,
}


def document(turn: Turn, model: str, seed: str) -> dict[str, Any]:
    """The whole answer, for a request that does not stream."""
    output = [_message(turn, seed)]
    if turn.call is not None:
        output.append(_call(turn.call, seed))
    return _response(model, seed, "completed", output)


def events(turn: Turn, model: str, seed: str) -> Iterator[dict[str, Any]]:
    """The events of a stream, in order and numbered."""
    for number, event in enumerate(_events(turn, model, seed)):
        kind = event.pop("type")
        yield {"type": kind, "sequence_number": number, **event}


def _events(turn: Turn, model: str, seed: str) -> Iterator[dict[str, Any]]:
    begun = _response(model, seed, "in_progress", [])
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    yield from _message_events(turn, seed)
    if turn.call is not None:
        yield from _call_events(turn.call, seed)
    yield {"type": "response.completed", "response": document(turn, model, seed)}


def _message_events(turn: Turn, seed: str) -> Iterator[dict[str, Any]]:
    message = _message(turn, seed)
    opening = {**message, "status": "in_progress", "content": []}
    place = {"item_id": message["id"], "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": turn.text, "annotations": []}
    half = len(turn.text) // 2
    yield {"type": "response.output_item.added", "output_index": 0, "item": opening}
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    for delta in (turn.text[:half], turn.text[half:]):
        yield {"type": "response.output_text.delta", **place, "delta": delta, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": turn.text, "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}
    yield {"type": "response.output_item.done", "output_index": 0, "item": message}


def _call_events(call: ToolCall, seed: str) -> Iterator[dict[str, Any]]:
    item = _call(call, seed)
    field = "input" if call.tool.custom else "arguments"
    kind = "custom_tool_call_input" if call.tool.custom else "function_call_arguments"
    opening = {**item, "status": "in_progress", field: ""}
    place = {"item_id": item["id"], "output_index": 1}
    yield {"type": "response.output_item.added", "output_index": 1, "item": opening}
    yield {"type": f"response.{kind}.delta", **place, "delta": item[field]}
    yield {"type": f"response.{kind}.done", **place, field: item[field]}
    yield {"type": "response.output_item.done", "output_index": 1, "item": item}


def _message(turn: Turn, seed: str) -> dict[str, Any]:
    return {
        "type": "message",
        "id": f"msg_{seed}",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": turn.text, "annotations": []}],
    }


def _call(call: ToolCall, seed: str) -> dict[str, Any]:
    item: dict[str, Any] = {"call_id": f"call_{seed}", "name": call.tool.name}
    if call.tool.namespace:
        item["namespace"] = call.tool.namespace
    if call.tool.custom:
        item |= {"type": "custom_tool_call", "id": f"ctc_{seed}", "input": call.text}
    else:
        arguments = json.dumps(dict(call.arguments))
        item |= {"type": "function_call", "id": f"fc_{seed}", "arguments": arguments}
    return {**item, "status": "completed"}


def _response(model: str, seed: str, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"resp_{seed}",
        "object": "response",
        "created_at": CREATED,
        "model": model,
        "status": status,
        "output": output,
        "usage": USAGE if status == "completed" else None,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
