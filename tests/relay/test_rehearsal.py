"""The scripted model, as the agents of samples meet it: directly and through the relay."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import pytest

import relay
from relay.records import Usage
from relay.rehearsal.script import report_command

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
DIGEST = hashlib.sha256(b"nonce").hexdigest()


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


CODEX_TOOLS = {
    "type": "additional_tools",
    "role": "developer",
    "tools": [
        {
            "type": "namespace",
            "name": "functions",
            "tools": [
                {"type": "custom", "name": "exec", "format": {"type": "grammar"}},
                {"type": "function", "name": "wait", "parameters": json_schema(cell_id="string")},
            ],
        }
    ],
}
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


@protocols
@pytest.mark.parametrize("stream", [True, False])
async def test_the_first_turn_calls_the_shell_and_the_second_quotes_what_it_gave(protocol, stream):
    async with rehearsing() as client:
        first = await say(client, protocol, "do it", ("bash", SCHEMA), stream=stream)
        text, name, arguments = turn_of(protocol, first)
        assert text
        assert (name, arguments["command"]) == ("bash", report_command())
        second = await say(
            client,
            protocol,
            "do it",
            ("bash", SCHEMA),
            results=[f"a sha256 {DIGEST}"],
            stream=stream,
        )
        text, name, _ = turn_of(protocol, second)
        assert name is None
        assert f"sha256 {DIGEST}" in text
        assert all(record.completed for record in client.records)
        assert [record.model_answered for record in client.records] == ["m", "m"]


@protocols
@pytest.mark.parametrize("stream", [True, False])
async def test_the_relay_reads_its_usage_in_every_protocol(protocol, stream):
    more = {"stream_options": {"include_usage": True}} if protocol == "openai-chat" else {}
    async with rehearsing() as client:
        await say(client, protocol, "do it", ("bash", SCHEMA), stream=stream, **more)
        usage = client.records[0].usage
    if protocol == "anthropic-messages":
        assert usage == Usage(400, 250, 30, 40)
    else:
        writes = 0 if protocol == "openai-responses" else None
        assert usage == Usage(400, 250, writes, 44, 4)


async def test_a_chat_stream_tells_usage_only_when_asked():
    async with rehearsing() as client:
        silent = await say(client, "openai-chat", "hi", ("bash", SCHEMA), stream=True)
        assert "usage" not in silent.text
        assert client.records[0].usage is None
        assert client.records[0].completed


CLAUDE = [("Read", json_schema(file_path="string")), ("Bash", SCHEMA)]
PI = [("read", json_schema(path="string")), ("bash", SCHEMA)]
HERMES = [("process", json_schema(command="string")), ("terminal", SCHEMA)]
CODEX = [("write_stdin", json_schema(chars="string")), ("exec_command", json_schema(cmd="string"))]
TOOLSETS = [
    ("anthropic-messages", CLAUDE, "Bash", "command"),
    ("openai-chat", PI, "bash", "command"),
    ("openai-chat", HERMES, "terminal", "command"),
    ("openai-responses", CODEX, "exec_command", "cmd"),
    ("openai-chat", [("run_it", json_schema(cmd="string"))], "run_it", "cmd"),
]


@pytest.mark.parametrize(("protocol", "tools", "name", "key"), TOOLSETS)
async def test_it_finds_the_shell_among_the_tools_of_each_agent(protocol, tools, name, key):
    async with rehearsing() as client:
        response = await say(client, protocol, "do it", *tools)
        _, called, arguments = turn_of(protocol, response)
        assert (called, arguments[key]) == (name, report_command())


async def test_it_runs_codex_javascript_where_codex_hides_its_tools():
    async with rehearsing() as client:
        request = responses_request(
            'rehearsal: command echo "a\\b"', extra=[CODEX_TOOLS], stream=True
        )
        del request["tools"]
        response = await client.post("/v1/responses", json=request)
        item = events(response)[-1]["response"]["output"][-1]
        assert (item["type"], item["name"], item["namespace"]) == (
            "custom_tool_call", "exec", "functions",
        )  # fmt: skip
        assert 'await tools.exec_command({cmd: "echo \\"a\\\\b\\""})' in item["input"]
        assert client.records[0].completed


async def test_it_gives_an_old_shell_tool_its_argument_list():
    async with rehearsing() as client:
        schema = {"type": "object", "properties": {"command": {"type": "array"}}}
        response = await say(client, "openai-responses", "rehearsal: command ls", ("shell", schema))
        assert turn_of("openai-responses", response)[2] == {"command": ["sh", "-c", "ls"]}


async def test_it_fills_in_what_a_tool_requires_besides_its_command():
    schema = json_schema(command="string", description="string", wait="boolean", n="integer")
    schema["required"] = ["command", "wait", "n"]
    async with rehearsing() as client:
        response = await say(client, "openai-chat", "rehearsal: command ls", ("bash", schema))
        arguments = turn_of("openai-chat", response)[2]
        assert arguments.pop("description")
        assert arguments == {"command": "ls", "wait": False, "n": 1}


@protocols
async def test_without_tools_it_says_a_few_words(protocol):
    async with rehearsing() as client:
        text, name, _ = turn_of(protocol, await say(client, protocol, "a title please"))
        assert (name, 0 < len(text) < 40) == (None, True)


async def test_without_a_shell_among_the_tools_it_says_so():
    async with rehearsing() as client:
        response = await say(client, "openai-chat", "x", ("read", json_schema(path="string")))
        text, name, _ = turn_of("openai-chat", response)
        assert name is None
        assert "shell" in text


@protocols
async def test_the_same_request_gets_the_same_answer(protocol):
    async with rehearsing() as client:
        args = (client, protocol, "do it", ("bash", SCHEMA))
        assert (await say(*args, stream=True)).content == (await say(*args, stream=True)).content
        other = await say(client, protocol, "do it too", ("bash", SCHEMA), stream=True)
        assert other.content != (await say(*args, stream=True)).content


@protocols
async def test_a_task_may_ask_for_a_failure(protocol):
    async with rehearsing() as client:
        path, make = PATHS[protocol]
        request = make("rehearsal: status 429\nthe task", ("bash", SCHEMA), stream=True)
        response = await client.post(path, json=request)
        assert response.status_code == 429
        error = response.json()["error"]
        assert error["message"]
        assert error["type"] == "rate_limit_error"
        assert not client.records[0].completed


@protocols
async def test_a_task_may_ask_for_a_loop(protocol):
    async with rehearsing() as client:
        response = await say(
            client, protocol, "rehearsal: loop", ("bash", SCHEMA), results=["x"] * 5
        )
        assert turn_of(protocol, response)[1] == "bash"


async def test_directives_are_read_through_an_agents_quotation_marks():
    async with rehearsing() as client:
        task = '"rehearsal: command touch a\nrehearsal: loop\n\nSummarise."'
        response = await say(client, "openai-chat", task, ("bash", SCHEMA), results=["x"])
        assert turn_of("openai-chat", response)[1:] == ("bash", {"command": "touch a"})


async def test_a_directive_further_down_is_only_text():
    async with rehearsing() as client:
        task = "Summarise.\nrehearsal: status 500"
        await say(client, "openai-chat", task, ("bash", SCHEMA))


async def test_a_task_may_ask_for_slow_events_and_for_silence():
    async with rehearsing() as client:
        for directive, least in (("slow 0.02", 0.15), ("silent 0.2", 0.2)):
            started = time.monotonic()
            task = f"rehearsal: {directive}"
            await say(client, "anthropic-messages", task, ("bash", SCHEMA), stream=True)
            assert least <= time.monotonic() - started < 3


@pytest.mark.parametrize(
    "task",
    ["rehearsal: slow -1", "rehearsal: slow 1e9", "rehearsal: status 99999", "rehearsal: status ok",
     "rehearsal:", "rehearsal: command", "rehearsal: unknown thing"],
)  # fmt: skip
async def test_a_directive_that_makes_no_sense_changes_nothing(task):
    async with rehearsing() as client:
        response = await say(client, "openai-chat", task, ("bash", SCHEMA))
        assert turn_of("openai-chat", response)[2] == {"command": report_command()}


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"7", b"{", b"\xff", b"[" * 100_000, b'{"messages":7,"tools":"x","model":3}',
     b'{"messages":[7,{"role":"user","content":[{"type":"text","text":9}]}],"tools":[{"function":3}]}',
     b'{"input":[{"type":"additional_tools","tools":[{"type":"namespace","tools":9}]}]}'],
)  # fmt: skip
@protocols
async def test_no_body_brings_it_down(protocol, body):
    async with rehearsing() as client:
        response = await client.post(PATHS[protocol][0], content=body)
        assert response.status_code in (200, 400)
        assert response.json()


async def test_it_lists_itself_and_counts_tokens():
    async with rehearsing() as client:
        assert [m["id"] for m in (await client.get("/v1/models")).json()["data"]] == ["rehearsal"]
        counted = await client.post("/v1/messages/count_tokens", content=b"{}")
        assert counted.json()["input_tokens"] > 0


@pytest.mark.parametrize("python", [True, False], ids=["with python3", "without python3"])
def test_its_command_writes_a_report_of_the_files_and_prints_it(tmp_path, python):
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("sh", "find", "sort", "head", "wc", "tr", "cut", "sha256sum"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    if python:
        (tools / "python3").symlink_to(sys.executable)
    work = tmp_path / "work"
    (work / ".git").mkdir(parents=True)
    (work / ".git" / "config").write_text("secret")
    (work / "a file").write_bytes(b"nonce")
    (work / "sub").mkdir()
    (work / "sub" / "b").write_bytes(b"")
    (work / "REPORT.md").write_text("old")
    done = subprocess.run(
        ["sh", "-c", report_command()], cwd=work, env={"PATH": str(tools)},
        capture_output=True, check=True, text=True,
    )  # fmt: skip
    report = (work / "REPORT.md").read_text()
    assert done.stdout.strip() in report
    assert done.stdout.splitlines() == [
        f"- `a file`: 5 bytes, sha256 {DIGEST}",
        f"- `sub/b`: 0 bytes, sha256 {hashlib.sha256(b'').hexdigest()}",
    ]
    assert report.startswith("# ")
    assert sorted(p.name for p in work.iterdir()) == [".git", "REPORT.md", "a file", "sub"]
