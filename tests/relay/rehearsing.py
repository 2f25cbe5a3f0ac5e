"""Requests to the scripted model in the shape of each agent's, and what it answered."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path

import httpx
import pytest

import relay

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


def json_schema(**properties):
    return {"type": "object", "properties": {k: {"type": v} for k, v in properties.items()}}


def messages_request(task, *tools, results=(), **more):
    messages = [{"role": "user", "content": [{"type": "text", "text": "<reminder>"},
                                             {"type": "text", "text": task}]}]  # fmt: skip
    for result in results:
        messages += [
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": result}],
            },
        ]
    offered = [{"name": name, "input_schema": schema} for name, schema in tools]
    return {"model": "m", "max_tokens": 9, "messages": messages, "tools": offered, **more}


def chat_request(task, *tools, results=(), **more):
    messages = [{"role": "system", "content": "be good"}, {"role": "user", "content": task}]
    for result in results:
        messages += [
            {"role": "assistant", "content": "", "tool_calls": []},
            {"role": "tool", "tool_call_id": "t", "content": result},
        ]
    offered = [
        {"type": "function", "function": {"name": name, "parameters": schema}}
        for name, schema in tools
    ]
    return {"model": "m", "messages": messages, "tools": offered, **more}


def responses_request(task, *tools, results=(), extra=(), **more):
    items = [
        *extra,
        {
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": "be good"}],
        },
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": task}]},
    ]
    for result in results:
        items += [
            {"type": "function_call", "call_id": "t", "name": "shell", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "t", "output": result},
        ]
    offered = [{"type": "function", "name": name, "parameters": schema} for name, schema in tools]
    return {"model": "m", "input": items, "tools": offered, **more}


PATHS = {
    "anthropic-messages": ("/v1/messages", messages_request),
    "openai-chat": ("/v1/chat/completions", chat_request),
    "openai-responses": ("/v1/responses", responses_request),
}
protocols = pytest.mark.parametrize("protocol", list(PATHS))


@contextlib.asynccontextmanager
async def rehearsing():
    """A client of the rehearsal model, through the relay, and the records of its calls."""
    with tempfile.TemporaryDirectory() as directory:
        model, door = Path(directory) / "model.sock", Path(directory) / "relay.sock"
        policy = relay.Policy(relay.get_provider("rehearsal"), relay.Endpoint.at_socket(str(model)))
        records = []
        app = relay.create_app(policy, None, "tok", relay.Ledger(on_call=records.append))
        async with (
            relay.serving(relay.create_rehearsal_app(), relay.bind_unix(model)),
            relay.serving(app, relay.bind_unix(door)),
            httpx.AsyncClient(
                transport=httpx.AsyncHTTPTransport(uds=str(door)),
                base_url="http://relay",
                headers={"authorization": "Bearer tok"},
            ) as client,
        ):
            client.records = records
            yield client


async def say(client, protocol, *args, **kwargs):
    path, make = PATHS[protocol]
    response = await client.post(path, json=make(*args, **kwargs))
    assert response.status_code == 200, response.text
    return response


def events(response):
    """The data of a stream's events, and their names."""
    found = []
    for block in response.text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines())
        if lines.get("data") == "[DONE]":
            found.append("[DONE]")
        elif lines:
            event = json.loads(lines["data"])
            assert lines.get("event", event.get("type")) == event.get("type")
            found.append(event)
    return found


def turn_of(protocol, response):
    """Text, the tool's name, its arguments (or text), however the answer came."""
    streamed = response.headers["content-type"].startswith("text/event-stream")
    if protocol == "anthropic-messages":
        content = assembled_message(events(response)) if streamed else response.json()["content"]
        text = "".join(block["text"] for block in content if block["type"] == "text")
        calls = [(b["name"], b["input"]) for b in content if b["type"] == "tool_use"]
    elif protocol == "openai-chat":
        message = (
            assembled_chat(events(response))
            if streamed
            else response.json()["choices"][0]["message"]
        )
        text = message["content"]
        functions = [call["function"] for call in message.get("tool_calls", [])]
        calls = [(f["name"], json.loads(f["arguments"])) for f in functions]
    else:
        output = (events(response)[-1]["response"] if streamed else response.json())["output"]
        text = "".join(
            p["text"] for item in output if item["type"] == "message" for p in item["content"]
        )
        calls = [
            (i["name"], json.loads(i["arguments"])) for i in output if i["type"] == "function_call"
        ]
        calls += [(i["name"], i["input"]) for i in output if i["type"] == "custom_tool_call"]
    assert len(calls) <= 1
    return (text, *(calls[0] if calls else (None, None)))


def assembled_message(stream):
    blocks = []
    for event in stream:
        if event["type"] == "content_block_start":
            blocks.append({**event["content_block"], "json": ""})
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            blocks[event["index"]]["json"] += delta.get("partial_json", "")
            if "text" in delta:
                blocks[event["index"]]["text"] += delta["text"]
    for block in blocks:
        if block["type"] == "tool_use":
            block["input"] = json.loads(block["json"])
    return blocks


def assembled_chat(stream):
    message = {"content": "", "tool_calls": []}
    for chunk in stream[:-1]:
        for choice in chunk["choices"]:
            message["content"] += choice["delta"].get("content", "")
            message["tool_calls"] += choice["delta"].get("tool_calls", [])
    return message
