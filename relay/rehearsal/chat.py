"""The scripted model's turn as OpenAI Chat Completions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from relay.rehearsal.script import Turn

CREATED = 1_700_000_000  # a fixed time: the same request gets the same answer
USAGE = {
    "prompt_tokens": 400,
    "completion_tokens": 44,
    "total_tokens": 444,
    "prompt_tokens_details": {"cached_tokens": 250},
    "completion_tokens_details": {"reasoning_tokens": 4},
}


def document(turn: Turn, model: str, seed: str) -> dict[str, Any]:
    """The whole answer, for a request that does not stream."""
    message: dict[str, Any] = {"role": "assistant", "content": turn.text}
    if turn.call is not None:
        message["tool_calls"] = [_tool_call(turn, seed)]
    choice = {"index": 0, "message": message, "finish_reason": _reason(turn), "logprobs": None}
    return {**_head(model, seed, "chat.completion"), "choices": [choice], "usage": USAGE}


def events(turn: Turn, model: str, seed: str, *, include_usage: bool) -> Iterator[dict[str, Any]]:
    """The chunks of a stream, in order, without the closing `[DONE]`."""
    half = len(turn.text) // 2
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": ""},
        {"content": turn.text[:half]},
        {"content": turn.text[half:]},
    ]
    if turn.call is not None:
        deltas.append({"tool_calls": [{"index": 0, **_tool_call(turn, seed)}]})
    head = _head(model, seed, "chat.completion.chunk")
    known = {"usage": None} if include_usage else {}
    for delta in deltas:
        choice = {"index": 0, "delta": delta, "finish_reason": None, "logprobs": None}
        yield {**head, "choices": [choice], **known}
    choice = {"index": 0, "delta": {}, "finish_reason": _reason(turn), "logprobs": None}
    yield {**head, "choices": [choice], **known}
    if include_usage:
        yield {**head, "choices": [], "usage": USAGE}


def _head(model: str, seed: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{seed}", "object": kind, "created": CREATED, "model": model}


def _tool_call(turn: Turn, seed: str) -> dict[str, Any]:
    name = turn.call.tool.name if turn.call else ""
    arguments = json.dumps(dict(turn.call.arguments) if turn.call else {})
    function = {"name": name, "arguments": arguments}
    return {"id": f"call_{seed}", "type": "function", "function": function}


def _reason(turn: Turn) -> str:
    return "tool_calls" if turn.call else "stop"
