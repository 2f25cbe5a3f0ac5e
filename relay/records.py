"""What the relay knows of each call, and the ledger that counts them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

CostKind = Literal["exact", "reported", "lower_bound", "unknown"]
Protocol = Literal["anthropic-messages", "openai-chat", "openai-responses", "gemini"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, as the provider counted them. None means it did not say.

    `input_tokens` is everything that went in, cache reads and writes included, whatever the
    protocol's own convention is.
    """

    input_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_write_1h_tokens: int | None = None  # of the cache writes, those kept for an hour


@dataclass(slots=True)
class CallRecord:
    """One request that reached the relay, relayed or refused. Times are epoch seconds."""

    sequence: int
    method: str
    path: str
    started_at: float
    protocol: Protocol | None = None
    model_asked: str = ""
    model_answered: str = ""
    status: int | None = None  # what the client got; None when it got no status line
    refusal: str = ""  # the rule that refused it
    error: str = ""  # what went wrong upstream or with the client, in words
    first_byte_at: float | None = None
    ended_at: float | None = None
    bytes_in: int = 0  # request body, as received
    bytes_out: int = 0  # response body, as sent
    usage: Usage | None = None
    raw_usage: dict[str, Any] = field(default_factory=dict)
    reported_cost_usd: float | None = None  # by the provider
    cost_usd: float | None = None  # as far as it is known; None for what is no model call
    cost_kind: CostKind | None = None  # "exact": from the usage and the price table
    clamped: bool = False  # a limit on its output was lowered or added
    completed: bool = False  # a model call that was answered 2xx and whose answer arrived whole


@dataclass(slots=True)
class Ledger:
    """Counts calls and hands each finished one to `on_call`, in the relay's own event loop.

    `spent_usd` is what is known of the cost of all calls; where a call's cost is not known to the
    end, it is a lower bound. `held_usd` is what a budget keeps back for such calls beside it.
    """

    on_call: Callable[[CallRecord], None] | None = None
    relayed: int = 0
    refused: int = 0
    completed: int = 0
    clamped: int = 0  # calls whose output limit was lowered or added
    spent_usd: float = 0.0
    spent_is_lower_bound: bool = False
    held_usd: float = 0.0
    tokens: int = 0  # in and out, as far as the provider counted them
    exhausted: bool = False  # a call was refused because the budget had nothing left
    in_flight: int = 0
    last_activity: float = field(default_factory=time.monotonic)  # any byte either way
    sequence: int = 0
