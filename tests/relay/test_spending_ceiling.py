"""A budget that is spent: who is refused, in which words, and what is not counted."""

from __future__ import annotations

import pytest

from relay.budget import Budget
from relay.prices import load_prices
from relay.providers import get_provider
from tests.relay.paid_calls import PATHS, PRICES, asking, replying, used
from tests.relay.stand import TOKEN, standing

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("provider", "kind"),
    [
        ("anthropic", "billing_error"),
        ("openai", "insufficient_quota"),
        ("openai-compat", "insufficient_quota"),
    ],
)
async def test_when_nothing_is_left_a_call_is_refused_with_what_was_spent(provider, kind):
    """R-18, and the run can end for this reason."""
    reply = replying(used(provider, 2))
    async with standing(reply, provider, prices=PRICES, budget=Budget(usd=2.5)) as stand:
        assert (await stand.post(PATHS[provider], json=asking())).status_code == 200
        assert not stand.ledger.exhausted
        refused = await stand.post(PATHS[provider], json=asking())
        assert refused.status_code == 402
        error = refused.json()["error"]
        assert error["type"] == kind
        assert "$3.0000 of $2.5000" in error["message"]
        assert "≥" not in error["message"]
        assert "--budget" in error["message"]
        assert refused.headers["x-should-retry"] == "false"
        assert stand.ledger.exhausted
        record = await stand.record(2)
        assert (record.refusal, record.cost_usd) == ("budget", None)
        assert len(stand.provider.seen) == 1


async def test_a_spent_sum_that_is_a_lower_bound_is_shown_as_one():
    reply = replying({"model": "m", "usage": {"output_tokens": 3}})
    async with standing(reply, prices=PRICES, budget=Budget(usd=3)) as stand:
        await stand.post(json=asking())
        refused = await stand.post(json=asking())
        assert "≥ $3.0000 of $3.0000" in refused.json()["error"]["message"]


async def test_tokens_can_be_the_ceiling():
    reply = replying(used("anthropic", 2))
    async with standing(reply, prices=PRICES, budget=Budget(tokens=1_000_000)) as stand:
        assert (await stand.post(json=asking())).status_code == 200
        refused = await stand.post(json=asking())
        assert refused.status_code == 402
        assert "1,000,002 of 1,000,000 tokens" in refused.json()["error"]["message"]
        assert "--token-budget" in refused.json()["error"]["message"]


async def test_a_budget_of_tokens_needs_no_price():
    reply = replying(used("openai-compat", 2))
    async with standing(reply, "openai-compat", budget=Budget(tokens=10**9)) as stand:
        told = await stand.post(PATHS["openai-compat"], json={"model": "local", "max_tokens": 5})
        assert told.status_code == 200


async def test_calls_that_are_no_model_calls_are_neither_charged_nor_refused():
    reply = replying(used("anthropic", 2))
    async with standing(reply, prices=PRICES, budget=Budget(usd=1)) as stand:
        await stand.post(json=asking())
        assert (await stand.post(json=asking())).status_code == 402
        told = await stand.post("/v1/messages/count_tokens", json={"model": "new"})
        assert told.status_code == 200
        assert (await stand.record(3)).cost_kind is None


MODEL_CALLS = [
    (name, route.path.replace("{model}", "m"))
    for name in ("anthropic", "openai", "openrouter", "openai-compat", "gemini")
    for route in get_provider(name).routes
    if route.protocol
]


@pytest.mark.parametrize(("provider", "path"), MODEL_CALLS)
async def test_no_route_is_left_out_of_the_count(provider, path):
    """litellm#38176: what told nothing of its usage keeps its reservation, on every protocol."""
    prices = load_prices(f"[{provider}]\nm = {{ input = 1, output = 1 }}")
    async with standing(replying({}), provider, prices=prices, budget=Budget(usd=0.001)) as stand:
        headers = {"x-goog-api-key": TOKEN}
        assert (await stand.post(path, json={"model": "m"}, headers=headers)).status_code == 200
        assert (await stand.record()).cost_kind == "unknown"
        assert (await stand.post(path, json={"model": "m"}, headers=headers)).status_code == 402


async def test_under_a_budget_a_body_that_can_be_read_in_two_ways_is_refused():
    async with standing(replying({}), prices=PRICES, budget=Budget(usd=1)) as stand:
        told = await stand.post(content=b'{"model":"m","max_tokens":5,"max_tokens":9}')
        assert (told.status_code, stand.provider.seen) == (400, [])
