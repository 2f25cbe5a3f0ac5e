"""Asks a provider whether a key is good, before a run starts that would only find out inside.

One request, no redirects, as `relay.asking` makes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from relay.asking import ask
from relay.connection import UpstreamError, UpstreamTLSFailed
from relay.credential import Credential
from relay.endpoints import Endpoint, endpoint_of
from relay.providers import Provider
from relay.proxies import InvalidProxy

Kind = Literal["ok", "skipped", "bad_key", "no_credit", "rate_limited", "unreachable", "tls", "odd"]
TIMEOUT_S = 15.0


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
    try:
        reply = await ask(
            provider,
            credential,
            provider.preflight,
            upstream=upstream,
            timeout_s=timeout_s,
            environ=environ,
        )
    except UpstreamTLSFailed as error:
        return KeyCheck("tls", f"{provider.name} cannot be trusted: {error}")
    except UpstreamError as error:
        return KeyCheck("unreachable", f"{provider.name} cannot be reached: {error}")
    except TimeoutError:
        asked = upstream or endpoint_of(provider.scheme, provider.host, provider.port)
        words = f"no answer from {asked.url} within {timeout_s:g} s"
        return KeyCheck("unreachable", f"{provider.name} cannot be reached: {words}")
    return _judge(_Answer(provider, credential, reply.status, reply.body))


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
