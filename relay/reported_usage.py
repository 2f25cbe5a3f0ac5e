"""What a provider says a key has spent today, to hold beside what was metered here.

Only OpenRouter tells it to the key itself: `GET /api/v1/key`, in its API reference, has
`usage_daily` (credits, which are USD, of the current UTC day) and `byok_usage_daily` (the same,
paid with a key of one's own at the model's provider). Others tell it to administrators' keys only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relay.asking import ask
from relay.connection import UpstreamError
from relay.credential import Credential
from relay.endpoints import Endpoint
from relay.providers import Provider
from relay.proxies import InvalidProxy

TIMEOUT_S = 15.0
_KEY_PATH = "/api/v1/key"


@dataclass(frozen=True, slots=True)
class ReportedUsage:
    """`usd` of the current UTC day; None when it is not known, and `text` says why."""

    usd: float | None
    text: str = ""


def tells_usage(provider: Provider) -> bool:
    """Whether this provider tells a key what it has spent."""
    return provider.name == "openrouter"


async def usage_today(
    provider: Provider,
    credential: Credential,
    *,
    upstream: Endpoint | None = None,
    timeout_s: float = TIMEOUT_S,
    environ: Mapping[str, str] | None = None,
) -> ReportedUsage:
    """Ask the provider what this key has spent since midnight UTC. Never raises."""
    if not tells_usage(provider):
        return ReportedUsage(None, f"{provider.name} tells no key what it has spent")
    try:
        reply = await ask(
            provider,
            credential,
            _KEY_PATH,
            upstream=upstream,
            timeout_s=timeout_s,
            environ=environ,
        )
    except (UpstreamError, InvalidProxy) as error:
        return ReportedUsage(None, f"{provider.name} cannot be asked: {error}")
    except TimeoutError:
        return ReportedUsage(None, f"{provider.name} did not answer within {timeout_s:g} s")
    if reply.status != 200:
        return ReportedUsage(None, f"{provider.name} answered {reply.status}")
    data = reply.body.get("data") if isinstance(reply.body, dict) else None
    if not isinstance(data, dict):
        return ReportedUsage(None, f"{provider.name} answered nothing that can be read")
    credits_spent, own_key = _amount(data.get("usage_daily")), _amount(data.get("byok_usage_daily"))
    if credits_spent is None:
        return ReportedUsage(None, f"{provider.name} did not say what was spent today")
    return ReportedUsage(credits_spent + (own_key or 0.0))


def _amount(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None
