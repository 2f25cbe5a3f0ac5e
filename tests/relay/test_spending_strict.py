"""A strict budget: outputs lowered to what is left, and no call without a bound."""

from __future__ import annotations

import json

import pytest

from relay.budget import Budget
from relay.prices import load_prices
from tests.relay.paid_calls import PATHS, PRICES, asking, replying, used
from tests.relay.stand import standing

pytestmark = pytest.mark.anyio


async def test_a_strict_budget_lowers_the_output_to_what_is_left():
    reply = replying({"model": "m", "usage": {"input_tokens": 0, "output_tokens": 30}})
    async with standing(reply, prices=PRICES, budget=Budget(usd=100, strict=True)) as stand:
        await stand.post(json=asking(128_000))
        await stand.post(json={"model": "m"})
        await stand.record(2)
        sent = [json.loads(seen.body)["max_tokens"] for seen in stand.provider.seen]
        assert sent == [99, 69]
        assert [record.clamped for record in stand.records] == [True, True]
        assert stand.ledger.clamped == 2


async def test_a_strict_budget_refuses_when_what_is_left_is_too_little_to_say_anything():
    reply = replying({"model": "m", "usage": {"input_tokens": 0, "output_tokens": 90}})
    async with standing(reply, prices=PRICES, budget=Budget(usd=100, strict=True)) as stand:
        assert (await stand.post(json=asking(90))).status_code == 200
        assert (await stand.post(json=asking(90))).status_code == 402
        assert stand.ledger.exhausted


@pytest.mark.parametrize("limit", [{"usd": 1}, {"tokens": 10**6}])
async def test_a_strict_budget_takes_no_call_whose_cost_has_no_bound(limit):
    prices = load_prices("[openai]\nm = { input = 1, output = 2 }")
    budget = Budget(**limit, strict=True)
    async with standing(replying({}), "openai", prices=prices, budget=budget) as stand:
        body = asking(previous_response_id="resp_1")
        told = await stand.post("/v1/responses", json=body)
        assert told.status_code == 403
        assert "--budget-strict" in told.json()["error"]["message"]


async def test_a_strict_budget_of_tokens_lowers_the_output_too():
    reply = replying(used("openai", 2))
    budget = Budget(tokens=10_000, strict=True)
    async with standing(reply, "openai", budget=budget) as stand:
        await stand.post("/v1/responses", json={"model": "any", "input": "x"})
        assert 7_000 < json.loads(stand.provider.seen[0].body)["max_output_tokens"] < 8_000


async def test_a_strict_budget_that_leaves_no_room_for_thinking_says_so():
    body = asking(128_000, thinking={"type": "enabled", "budget_tokens": 2000})
    async with standing(replying({}), prices=PRICES, budget=Budget(usd=500, strict=True)) as stand:
        told = await stand.post(json=body)
        assert told.status_code == 402
        assert "thinking" in told.json()["error"]["message"]
        assert stand.provider.seen == []
        assert (await stand.post(json=asking(5))).status_code == 200


async def test_a_strict_budget_takes_no_model_without_a_price_even_one_at_a_time():
    budget = Budget(usd=1, strict=True, unpriced="serial")
    async with standing(replying({}), "openrouter", budget=budget) as stand:
        told = await stand.post(PATHS["openrouter"], json={"model": "x"})
        assert (told.status_code, told.json()["error"]["code"]) == (403, "unpriced")
        assert "--unpriced" not in told.json()["error"]["message"]


@pytest.mark.parametrize(
    ("budget", "amounts"),
    [
        (Budget(tokens=60, strict=True), ("129,000 tokens", "0 of 60 tokens spent", "--token-b")),
        (Budget(usd=3, strict=True), ("$", "$0.0000 of $3.0000 spent", "--budget would")),
    ],
)
async def test_a_call_that_does_not_fit_is_not_told_that_the_budget_is_spent(budget, amounts):
    async with standing(replying({}), prices=PRICES, budget=budget) as stand:
        told = await stand.post(json=asking(128_000))
        assert (told.status_code, stand.provider.seen) == (402, [])
        message = told.json()["error"]["message"]
        assert "does not fit" in message
        assert "is spent" not in message
        for words in amounts:
            assert words in message
