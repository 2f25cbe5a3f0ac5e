"""Asks a provider whether a key is good, before a run starts that would only find out inside.

One request, no redirects, through the same client, proxy and certificate settings as the relay's
own calls: what passes here is reached there too.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from relay.asgi import Headers
from relay.connection import UpstreamError, UpstreamTLSFailed
from relay.credential import Credential
from relay.endpoints import Endpoint, endpoint_of
from relay.headers import Outgoing
from relay.providers import Provider
from relay.proxies import InvalidProxy
from relay.upstream import Exchange, UpstreamClient

Kind = Literal["ok", "skipped", "bad_key", "no_credit", "rate_limited", "unreachable", "tls", "odd"]
TIMEOUT_S = 15.0
_MAX_BODY_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """What a provider thinks of a key.

    `text` is a sentence for people; it names the key's variable and never the key. It is empty
    for `ok` and `skipped`.
    """

    kind: Kind
    text: str = ""
    status: int | None = None

    @property
    def passes(self) -> bool:
        """Whether a run may start: an odd answer is no proof against a key."""
        return self.kind in ("ok", "skipped", "odd")


async def check_key(
    provider: Provider,
    credential: Credential | None,
    *,
    upstream: Endpoint | None = None,
    timeout_s: float = TIMEOUT_S,
    environ: Mapping[str, str] | None = None,
) -> KeyCheck:
    """Ask the provider about a key.

    Args:
        credential: None, for a provider that needs none, is not asked about.
        upstream: where the relay would send its calls; the provider's own host unless given.
        timeout_s: for everything together.
        environ: where proxy variables are looked up; this process's own unless given.

    Raises:
        InvalidProxy: a proxy variable cannot be used.
    """
    if not provider.preflight or credential is None:
        return KeyCheck("skipped")
    endpoint = upstream or endpoint_of(provider.scheme, provider.host, provider.port)
    client = UpstreamClient(
        endpoint, connect_timeout_s=timeout_s, idle_timeout_s=timeout_s, environ=environ
    )
    headers: Headers = [
        (b"accept", b"application/json"),
        (b"accept-encoding", b"identity"),
        (b"user-agent", b"sanduk"),
        *((name.encode(), value.encode()) for name, value in provider.preflight_headers),
    ]
    exchange = client.exchange()
    try:
        async with asyncio.timeout(timeout_s):
            await exchange.send(
                b"GET",
                provider.preflight.encode(),
                Outgoing(provider, endpoint.authority, credential)(headers),
                b"",
            )
            body = await _read(exchange)
        return _judge(_Answer(provider, credential, exchange.status, body))
    except UpstreamTLSFailed as error:
        return KeyCheck("tls", f"{provider.name} cannot be trusted: {error}")
    except UpstreamError as error:
        return KeyCheck("unreachable", f"{provider.name} cannot be reached: {error}")
    except TimeoutError:
        words = f"no answer from {endpoint.url} within {timeout_s:g} s"
        return KeyCheck("unreachable", f"{provider.name} cannot be reached: {words}")
    finally:
        exchange.close()
        await client.aclose()


async def _read(exchange: Exchange) -> Any:
    """The answer's JSON, None when it is none or too large to matter."""
    body, more = b"", True
    while more and len(body) <= _MAX_BODY_BYTES:
        piece, more = await exchange.read()
        body += piece
    if more:
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class _Answer:
    provider: Provider
    credential: Credential
    status: int
    body: Any

    @property
    def key(self) -> str:
        """The key's name for messages."""
        return self.credential.source or self.provider.key_env or "the key"

    def says(self, *words: str) -> bool:
        """Whether the error names one of these codes."""
        error = self.body.get("error") if isinstance(self.body, dict) else None
        if not isinstance(error, dict):
            return False
        details = error.get("details")
        parts = [error, *(details if isinstance(details, list) else [])]
        codes = [
            part.get(key)
            for part in parts
            if isinstance(part, dict)
            for key in ("code", "type", "reason")
        ]
        return any(code in words for code in codes if isinstance(code, str))


def _judge(answer: _Answer) -> KeyCheck:
    status, name, key = answer.status, answer.provider.name, answer.key
    if status in (401, 403) or answer.says("API_KEY_INVALID"):  # Google says 400 to a bad key
        return KeyCheck("bad_key", f"{name} does not accept {key} (it answered {status})", status)
    if status == 402 or answer.says("insufficient_quota", "billing_error"):
        text = f"the account of {key} at {name} has no credit (it answered {status})"
        return KeyCheck("no_credit", text, status)
    if status == 429:
        return KeyCheck("rate_limited", f"{name} limits the rate of {key} right now (429)", status)
    if _is_spent(answer):
        text = f"the limit of {key} at {name} is used up"
        return KeyCheck("no_credit", text, status)
    if not 200 <= status <= 299:
        text = f"{name} answered {status} to the check of {key}, which proves nothing"
        return KeyCheck("odd", text, status)
    return KeyCheck("ok", "", status)


def _is_spent(answer: _Answer) -> bool:
    """OpenRouter tells what is left of a key's limit, null where it has none."""
    data = answer.body.get("data") if isinstance(answer.body, dict) else None
    left = data.get("limit_remaining") if isinstance(data, dict) else None
    if isinstance(left, bool) or not isinstance(left, int | float):
        return False
    return answer.provider.name == "openrouter" and math.isfinite(left) and left <= 0


__all__ = ["InvalidProxy", "KeyCheck", "check_key"]
