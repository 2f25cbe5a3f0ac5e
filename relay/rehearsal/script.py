"""What the scripted model does: decided from one conversation, without memory."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from relay.rehearsal.conversation import Conversation, Tool

MAX_SECONDS = 3600.0
_MAX_DIGESTS = 50
_DIRECTIVE = re.compile(r"rehearsal:[ \t]*([a-z]+)[ \t]*(.*)")
_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_SHELLS = (
    "Bash",
    "bash",
    "terminal",
    "shell",
    "exec_command",
    "shell_command",
    "run_shell_command",
    "execute_command",
    "exec",
)
_COMMAND_ARGUMENTS = ("command", "cmd", "script")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool: an object of arguments, or the text of a custom tool."""

    tool: Tool
    arguments: Mapping[str, Any]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model says next, and how. Times are seconds."""

    text: str
    call: ToolCall | None = None
    event_delay_s: float = 0.0
    silence_s: float = 0.0
    status: int = 200


@functools.cache
def report_command() -> str:
    """The shell command of the first turn: python3 where the image has it, else plain tools."""
    script = resources.files("relay.rehearsal").joinpath("report.sh")
    return script.read_text("utf-8").rstrip("\n")


def next_turn(conversation: Conversation) -> Turn:
    """The model's next turn."""
    directives = _directives(conversation.task)
    delay, silence = _seconds(directives, "slow"), _seconds(directives, "silent")
    status = int(directives["status"]) if directives.get("status", "").isdigit() else 200
    if not 400 <= status <= 599:
        status = 200
    if not conversation.tools:
        return Turn(_words(conversation.answer_schema), None, delay, silence, status)
    command = directives.get("command") or report_command()
    call = None
    if not conversation.results or "loop" in directives:
        call = _shell_call(conversation.tools, command)
        text = "I list the files here and write REPORT.md."
        if call is None:
            text = "None of the tools on offer runs a shell command, so I cannot work here."
    else:
        text = _closing(conversation.results)
    return Turn(text, call, delay, silence, status)


def _words(schema: Mapping[str, Any] | None) -> str:
    """What is said where there is nothing to do, as JSON where that is wanted."""
    if schema is None:
        return "Rehearsal"
    properties = schema.get("properties")
    members = properties.items() if isinstance(properties, Mapping) else ()
    return json.dumps({key: _FILLERS.get(_type(kind), "rehearsal") for key, kind in members})


def _directives(task: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in task.splitlines():
        match = _DIRECTIVE.fullmatch(line.strip())
        if match is None:
            break
        found[match[1]] = match[2].strip()
    return found


def _seconds(directives: Mapping[str, str], key: str) -> float:
    value = directives.get(key, "")
    if not re.fullmatch(r"[0-9]{1,4}(?:\.[0-9]{1,3})?", value):
        return 0.0
    return min(float(value), MAX_SECONDS)


def _closing(results: tuple[str, ...]) -> str:
    digests = dict.fromkeys(digest for text in results for digest in _DIGEST.findall(text))
    quoted = ", ".join(f"sha256 {digest}" for digest in list(digests)[:_MAX_DIGESTS])
    return f"Report written. {quoted}" if quoted else "Done; the command printed no digest."


def _shell_call(tools: tuple[Tool, ...], command: str) -> ToolCall | None:
    """A call that runs `command`, in the shape of the best tool on offer."""
    named = [tool for name in _SHELLS for tool in tools if tool.name == name]
    for tool in [*named, *tools]:
        if tool.custom and tool.name == "exec":
            return ToolCall(tool, {}, _javascript(command))
        arguments = None if tool.custom else _arguments(tool, command)
        if arguments is not None:
            return ToolCall(tool, arguments)
    return None


def _javascript(command: str) -> str:
    """codex runs JavaScript that may call its own tools."""
    return (
        f"const done = await tools.exec_command({{cmd: {json.dumps(command)}}});\n"
        "text(done.output ?? JSON.stringify(done));"
    )


def _arguments(tool: Tool, command: str) -> dict[str, Any] | None:
    """Arguments that run the command, or None when the tool takes no command."""
    properties = tool.schema.get("properties")
    if not isinstance(properties, Mapping):
        return None
    for key in _COMMAND_ARGUMENTS:
        kind = _type(properties.get(key)) if key in properties else None
        if kind is not None:
            as_list = kind == "array"
            arguments: dict[str, Any] = {key: ["sh", "-c", command] if as_list else command}
            break
    else:
        return None
    if "description" in properties:
        arguments["description"] = "List the files and write the report"
    required = tool.schema.get("required")
    for key in required if isinstance(required, list) else []:
        if isinstance(key, str) and key not in arguments:
            arguments[key] = _FILLERS.get(_type(properties.get(key)), "rehearsal")
    return arguments


_FILLERS: Mapping[str, Any] = {
    "boolean": False,
    "integer": 1,
    "number": 1,
    "array": [],
    "object": {},
}


def _type(schema: object) -> str:
    """The JSON type a schema asks for; a string where it does not say."""
    kind = schema.get("type") if isinstance(schema, Mapping) else schema
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "string")
    return kind.lower() if isinstance(kind, str) else "string"  # Google shouts its types
