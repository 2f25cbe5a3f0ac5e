"""One request with one body to a relay with one policy, and what the provider got of it."""

from __future__ import annotations

import json
from typing import Any

from tests.relay.stand import OK, standing

PATHS = {
    "anthropic": "/v1/messages",
    "openai": "/v1/responses",
    "openai-compat": "/v1/chat/completions",
    "openrouter": "/api/v1/chat/completions",
    "gemini": "/v1beta/models/cheap:generateContent",
}


class Told:
    """What the client was told, and what the provider was asked."""

    def __init__(self, status: int, answer: dict[str, Any], sent: list[bytes], record: Any) -> None:
        self.status = status
        self.answer = answer
        self.sent = sent
        self.record = record

    @property
    def body(self) -> dict[str, Any]:
        assert len(self.sent) == 1, self.answer
        return json.loads(self.sent[0])

    @property
    def message(self) -> str:
        return str(self.answer["error"]["message"])

    @property
    def rule(self) -> str:
        error = self.answer["error"]
        return str(error.get("rule") or error.get("code"))


async def ask(provider: str, body: Any, path: str = "", **policy: Any) -> Told:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with standing(OK, provider, **policy) as stand:
        headers = {"x-goog-api-key": "run-token-1"}
        answer = await stand.post(path or PATHS[provider], content=content, headers=headers)
        record = await stand.record()
        assert stand.ledger.refused == (not stand.provider.seen)
        assert stand.ledger.clamped == record.clamped
        return Told(
            answer.status_code, answer.json(), [seen.body for seen in stand.provider.seen], record
        )
