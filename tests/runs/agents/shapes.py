"""Providers and requests the tests of the agents share."""

from __future__ import annotations

from relay import Protocol, Provider, Route

RELAY = "http://127.0.0.1:8080"
TOKEN = "run-token"


def make_provider(
    name: str,
    *paths: tuple[str, Protocol],
    prefix: str = "/v1",
    default_model: str = "",
) -> Provider:
    routes = tuple(Route(prefix + path, protocol=protocol) for path, protocol in paths)
    return Provider(
        name=name,
        scheme="https",
        host=f"{name}.test",
        port=None,
        prefix=prefix,
        routes=routes,
        default_model=default_model,
    )


MESSAGES: tuple[str, Protocol] = ("/messages", "anthropic-messages")
CHAT: tuple[str, Protocol] = ("/chat/completions", "openai-chat")
RESPONSES: tuple[str, Protocol] = ("/responses", "openai-responses")

ANTHROPIC = make_provider("anthropic", MESSAGES)
OPENAI = make_provider("openai", RESPONSES, CHAT, default_model="gpt-5.6-luna")
OPENROUTER = make_provider("openrouter", CHAT, prefix="/api/v1")
COMPATIBLE = make_provider("openai-compat", CHAT, RESPONSES)
REHEARSAL = make_provider("rehearsal", MESSAGES, CHAT, RESPONSES, default_model="rehearsal")
