"""What a request tells the scripted model: the task, the tools on offer, the tools' results.

The body comes from a container. Whatever is not of the expected shape is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from relay.records import Protocol


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool on offer.

    `schema` describes its arguments; `custom` tools take free text instead. `namespace` is set
    where the call has to repeat it.
    """

    name: str
    schema: Mapping[str, Any]
    custom: bool = False
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    model: str
    stream: bool
    task: str  # the user's words that came first among those that hold a directive, else the last
    tools: tuple[Tool, ...]
    results: tuple[str, ...]  # what the tools gave back, in order
    include_usage: bool = True
    answer_schema: Mapping[str, Any] | None = None  # it wants JSON of this shape, not words


def read_conversation(protocol: Protocol, body: Mapping[str, Any]) -> Conversation:
    """Read a request of one protocol.

    Where the path names model and streaming, the caller puts them into the body.
    """
    items = _list(body.get(_ITEMS.get(protocol, "messages")))
    if protocol == "openai-responses" and isinstance(body.get("input"), str):
        items = [{"type": "message", "role": "user", "content": body["input"]}]
    options = body.get("stream_options")
    asked = isinstance(options, Mapping) and options.get("include_usage") is True
    model = body.get("model")
    return Conversation(
        model=model if isinstance(model, str) else "rehearsal",
        stream=body.get("stream") is True,
        task=_task([text for item in items for text in _user_texts(item)]),
        tools=tuple(_tools(body, items)),
        results=tuple(text for item in items for text in _results(item)),
        include_usage=asked or protocol != "openai-chat",
        answer_schema=_answer_schema(body.get("generationConfig")),
    )


_ITEMS: Mapping[Protocol, str] = {"openai-responses": "input", "gemini": "contents"}


def _answer_schema(settings: object) -> Mapping[str, Any] | None:
    """gemini's CLI asks for JSON when it chooses among models by itself."""
    if not isinstance(settings, Mapping) or settings.get("responseMimeType") != "application/json":
        return None
    schema = settings.get("responseJsonSchema", settings.get("responseSchema"))
    return schema if isinstance(schema, Mapping) else {}


def _task(texts: list[str]) -> str:
    """Agents put words of their own before the task, or quotation marks around it."""
    for text in texts:
        bare = text.strip()
        if len(bare) > 1 and bare[0] == bare[-1] == '"':
            bare = bare[1:-1].lstrip()
        if bare.startswith("rehearsal:"):
            return bare
    return texts[-1] if texts else ""


def _user_texts(item: Mapping[str, Any]) -> Iterator[str]:
    if item.get("role") == "user":
        yield from _texts(item.get("content"), ("text", "input_text"))
        for part in _list(item.get("parts")):
            if isinstance(part.get("text"), str):
                yield part["text"]


def _results(item: Mapping[str, Any]) -> Iterator[str]:
    """The results of tool calls in one message or item, each as one text."""
    if item.get("role") == "tool":
        yield "\n".join(_texts(item.get("content"), ("text",)))
    elif item.get("type") in ("function_call_output", "custom_tool_call_output"):
        yield "\n".join(_texts(item.get("output"), ("input_text", "output_text", "text")))
    else:
        for block in _list(item.get("content")):
            if block.get("type") == "tool_result":
                yield "\n".join(_texts(block.get("content"), ("text",)))
        for part in _list(item.get("parts")):
            answer = part.get("functionResponse")
            given = answer.get("response") if isinstance(answer, Mapping) else None
            if isinstance(given, Mapping):
                yield "\n".join(value for value in given.values() if isinstance(value, str))


def _tools(body: Mapping[str, Any], items: list[Mapping[str, Any]]) -> Iterator[Tool]:
    offered = _list(body.get("tools"))
    for item in items:
        if item.get("type") == "additional_tools":
            offered = [*offered, *_list(item.get("tools"))]
    for tool in offered:
        if tool.get("type") == "namespace":
            namespace = tool.get("name")
            for inner in _list(tool.get("tools")):
                yield from _tool(inner, namespace if isinstance(namespace, str) else "")
        elif "functionDeclarations" in tool:
            for inner in _list(tool.get("functionDeclarations")):
                yield from _tool(inner, "")
        else:
            yield from _tool(tool, "")


def _tool(tool: Mapping[str, Any], namespace: str) -> Iterator[Tool]:
    function = tool.get("function")
    described = function if isinstance(function, Mapping) else tool
    name = described.get("name")
    schemas = (described.get(key) for key in ("parameters", "input_schema", "parametersJsonSchema"))
    schema = next((found for found in schemas if found is not None), None)
    if isinstance(name, str):
        yield Tool(
            name,
            schema if isinstance(schema, Mapping) else {},
            custom=tool.get("type") == "custom",
            namespace=namespace,
        )


def _texts(content: object, kinds: tuple[str, ...]) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for block in _list(content):
        text = block.get("text")
        if block.get("type") in kinds and isinstance(text, str):
            yield text


def _list(value: object) -> list[Mapping[str, Any]]:
    """The objects in a JSON array; empty for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
