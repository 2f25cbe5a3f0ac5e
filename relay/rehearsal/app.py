"""The scripted model as an ASGI application."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from relay.asgi import ASGIApp, Receive, Scope, Send
from relay.protocols import dialect
from relay.records import Protocol
from relay.rehearsal import chat, gemini, messages, responses
from relay.rehearsal.conversation import Conversation, read_conversation
from relay.rehearsal.script import Turn, next_turn

_PROTOCOLS: dict[str, Protocol] = {
    "/v1/messages": "anthropic-messages",
    "/v1/chat/completions": "openai-chat",
    "/v1/responses": "openai-responses",
}
_DOCUMENTS: dict[Protocol, Callable[[Turn, str, str], dict[str, Any]]] = {
    "anthropic-messages": messages.document,
    "openai-chat": chat.document,
    "openai-responses": responses.document,
    "gemini": gemini.document,
}
_MODELS = {
    "object": "list",
    "data": [
        {
            "id": "rehearsal",
            "object": "model",
            "type": "model",
            "display_name": "Rehearsal",
            "created": chat.CREATED,
            "created_at": "2023-11-14T22:13:20Z",
            "owned_by": "sanduk",
        }
    ],
    "has_more": False,
    "first_id": "rehearsal",
    "last_id": "rehearsal",
}


def create_rehearsal_app() -> ASGIApp:
    """The scripted model, to be served on a socket of its own that is the relay's upstream.

    It asks for no credential: whoever reaches its socket may use it.
    """
    return _rehearse


async def _rehearse(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        raise RuntimeError(f"the rehearsal model serves http only, not {scope['type']}")
    body = await _read(receive)
    path, method = scope["path"], scope["method"]
    at_google = gemini.PATH.fullmatch(path) if method == "POST" else None
    if (method, path) == ("GET", "/v1/models"):
        await _send_json(send, 200, _MODELS)
    elif (method, path) == ("GET", "/v1beta/models"):
        await _send_json(send, 200, gemini.MODELS)
    elif at_google is not None and at_google[2] == "countTokens":
        await _send_json(send, 200, {"totalTokens": len(body) // 4 + 1})
    elif at_google is not None:
        streams = at_google[2] == "streamGenerateContent"
        as_array = streams and b"alt=sse" not in scope.get("query_string", b"").split(b"&")
        extra = {"model": at_google[1], "stream": streams and not as_array}
        await _answer(send, "gemini", body, extra, as_array=as_array)
    elif (method, path) == ("POST", "/v1/messages/count_tokens"):
        await _send_json(send, 200, {"input_tokens": len(body) // 4 + 1})
    elif method == "POST" and path in _PROTOCOLS:
        await _answer(send, _PROTOCOLS[path], body)
    else:
        error = dialect(None).refusal(404, "not_found", "the rehearsal model has no such path")
        await _send_json(send, 404, error)


async def _answer(
    send: Send,
    protocol: Protocol,
    body: bytes,
    from_path: Mapping[str, object] = MappingProxyType({}),
    *,
    as_array: bool = False,
) -> None:
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        error = dialect(protocol).refusal(400, "body", "the request body is no JSON object")
        await _send_json(send, 400, error)
        return
    conversation = read_conversation(protocol, {**parsed, **from_path})
    turn = next_turn(conversation)
    if turn.silence_s:
        await asyncio.sleep(turn.silence_s)
    if turn.status != 200:
        error = dialect(protocol).refusal(turn.status, "rehearsed", "this failure was asked for")
        await _send_json(send, turn.status, error)
        return
    seed = hashlib.sha256(body).hexdigest()[:20]
    if conversation.stream:
        await _stream(send, turn, _events(protocol, turn, conversation, seed))
        return
    await asyncio.sleep(turn.event_delay_s)
    if as_array:
        await _send_json(send, 200, list(gemini.events(turn, conversation.model, seed)))
        return
    await _send_json(send, 200, _DOCUMENTS[protocol](turn, conversation.model, seed))


def _events(
    protocol: Protocol, turn: Turn, conversation: Conversation, seed: str
) -> Iterator[bytes]:
    """The events of a stream as they stand on the wire."""
    if protocol == "openai-chat":
        usage = conversation.include_usage
        for chunk in chat.events(turn, conversation.model, seed, include_usage=usage):
            yield b"data: %b\n\n" % json.dumps(chunk).encode()
        yield b"data: [DONE]\n\n"
        return
    if protocol == "gemini":
        for response in gemini.events(turn, conversation.model, seed):
            yield b"data: %b\r\n\r\n" % json.dumps(response).encode()
        return
    module = messages if protocol == "anthropic-messages" else responses
    for event in module.events(turn, conversation.model, seed):
        yield b"event: %b\ndata: %b\n\n" % (event["type"].encode(), json.dumps(event).encode())


async def _stream(send: Send, turn: Turn, events: Iterator[bytes]) -> None:
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for event in events:
        await asyncio.sleep(turn.event_delay_s)
        await send({"type": "http.response.body", "body": event, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _send_json(send: Send, status: int, value: object) -> None:
    body = json.dumps(value).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _read(receive: Receive) -> bytes:
    pieces: list[bytes] = []
    more = True
    while more:
        message = await receive()
        pieces.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(pieces)
