"""The scripted model, as the agents of samples meet it: through the relay."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys

import pytest

from relay.records import Usage
from relay.rehearsal.script import report_command
from tests.relay.rehearsing import (
    PATHS,
    SCHEMA,
    events,
    json_schema,
    protocols,
    rehearsing,
    responses_request,
    say,
    turn_of,
)

pytestmark = pytest.mark.anyio
DIGEST = hashlib.sha256(b"nonce").hexdigest()

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


def test_its_command_substitutes_nothing():
    """gemini runs no shell command in which it sees a substitution."""
    assert not [sign for sign in ("$(", "`", "<(", ">(") if sign in report_command()]


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
