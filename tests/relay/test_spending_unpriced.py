"""Models without a price: refused, or one call at a time."""

from __future__ import annotations

import asyncio
import json

import pytest

from relay.budget import Budget, InvalidBudget
from relay.policy import InvalidPolicy, Policy
from relay.providers import get_provider
from tests.relay.paid_calls import PATHS, PRICES, Held, asking, replying, settled
from tests.relay.stand import plain, standing

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("body", [{"model": "new"}, {}, {"model": "m", "fallbacks": ["new"]}])
async def test_a_model_without_a_price_is_refused_where_nobody_reports_its_cost(body):
    """litellm#20615: said, not guessed."""
    async with standing(replying({}), prices=PRICES, budget=Budget(usd=1)) as stand:
        told = await stand.post(json=body)
        assert (told.status_code, stand.provider.seen) == (403, [])
        message = told.json()["error"]["message"]
        assert "prices.toml" in message
        assert "--token-budget" in message
        assert "--unpriced" not in message  # it would be refused here
        assert not stand.ledger.exhausted


async def test_a_dearer_service_has_no_price_either():
    async with standing(replying({}), prices=PRICES, budget=Budget(usd=1)) as stand:
        told = await stand.post(json=asking(service_tier="priority"))
        assert told.status_code == 403
        assert "service tier" in told.json()["error"]["message"]


async def test_where_the_cost_is_reported_a_model_without_a_price_runs_one_call_at_a_time():
    content = {"usage": {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.4}}
    provider = Held(plain(json.dumps(content).encode()))
    async with standing(provider, "openrouter", budget=Budget(usd=1)) as stand:
        path = PATHS["openrouter"]
        calls = [asyncio.create_task(stand.post(path, json={"model": "x"})) for _ in range(4)]
        for number in (1, 2, 3):
            await provider.until(number)
            await settled()
            assert provider.arrived == number
            provider.go_on.release()
        answers = sorted([call.status_code for call in await asyncio.gather(*calls)])
        assert answers == [200, 200, 200, 402]
        assert stand.ledger.spent_usd == pytest.approx(1.2)


async def test_a_reply_without_its_promised_cost_stops_the_run():
    body = {"usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    async with standing(replying(body), "openrouter", budget=Budget(usd=100)) as stand:
        path = PATHS["openrouter"]
        assert (await stand.post(path, json={"model": "x"})).status_code == 200
        told = await stand.post(path, json={"model": "x"})
        assert told.status_code == 402
        assert "did not tell what they cost" in told.json()["error"]["message"]
        assert "≥" in told.json()["error"]["message"]
        assert stand.ledger.exhausted


async def test_an_error_owes_no_cost_and_stops_nothing():
    reply = replying({"error": {}}, "429 Too Many")
    async with standing(reply, "openrouter", budget=Budget(usd=100)) as stand:
        for _ in range(3):
            told = await stand.post(PATHS["openrouter"], json={"model": "x"})
            assert told.status_code == 429


async def test_refuse_can_be_chosen_where_the_cost_is_reported():
    budget = Budget(usd=1, unpriced="refuse")
    async with standing(replying({}), "openrouter", budget=budget) as stand:
        told = await stand.post(PATHS["openrouter"], json={"model": "x"})
        assert (told.status_code, stand.provider.seen) == (403, [])


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-compat", "gemini"])
def test_serial_is_refused_where_nobody_reports_what_a_call_cost(provider):
    """It would be no budget at all: every call would go out, one after the other."""
    budget = Budget(usd=0.01, unpriced="serial")
    with pytest.raises(
        InvalidPolicy, match=r"report what a call cost.*prices.toml.*--token-budget"
    ):
        Policy(get_provider(provider), budget=budget)
    Policy(get_provider("openrouter"), budget=budget)


def test_what_to_do_without_a_price_means_nothing_without_a_budget_of_money():
    with pytest.raises(InvalidBudget, match="--budget"):
        Budget(tokens=1000, unpriced="serial")


async def test_the_refusal_names_serial_where_it_can_be_had():
    budget = Budget(usd=1, unpriced="refuse")
    async with standing(replying({}), "openrouter", budget=budget) as stand:
        told = await stand.post(PATHS["openrouter"], json={"model": "x"})
        assert "--unpriced serial" in told.json()["error"]["message"]
