"""The wire protocols: how each says no, and where each says what a call used.

One module per protocol. The relay translates nothing between them; it only reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from typing import Protocol as Interface

from relay.protocols import anthropic_messages, gemini, openai_chat, openai_responses
from relay.protocols.reading import Reading
from relay.records import Protocol, Usage


class Dialect(Interface):
    """What a module of this package offers."""

    BOUND: tuple[tuple[str, ...], ...]
    """Where a request body bounds its output, each a path of keys; the first is added when none is
    there."""

    def refusal(self, status: int, rule: str, message: str) -> dict[str, Any]:
        """An error body as this protocol's clients expect it."""

    def read(self, document: bytes) -> Reading:
        """Model and usage of a whole response or of one event, and whether a call that ends here
        has told all of its usage. Raises what msgspec raises."""

    def usage(self, raw: Mapping[str, Any]) -> Usage:
        """Our reading of a usage object."""


DIALECTS: Mapping[Protocol, Dialect] = {
    "anthropic-messages": anthropic_messages,
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "gemini": gemini,
}


def dialect(protocol: Protocol | None) -> Dialect:
    """The dialect of a protocol; OpenAI's shape for calls that speak none."""
    return DIALECTS.get(protocol or "openai-chat", openai_chat)
