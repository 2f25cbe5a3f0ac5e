"""How many calls may be under way at once while a budget holds them back."""

from __future__ import annotations

import asyncio
import json

import pytest

from relay.budget import Budget
from relay.prices import load_prices
from tests.relay.paid_calls import PATHS, PRICES, asking, at_once, held, replying, settled, used
from tests.relay.stand import request, standing

pytestmark = pytest.mark.anyio
BY_INPUT = load_prices("[openai]\nm = { input = 1_000_000, output = 0, context = 50_000 }")


async def test_calls_stay_parallel_while_they_fit_and_the_next_waits():
    """litellm#34732."""
    provider = held(output=1)
    async with standing(provider, prices=PRICES, budget=Budget(usd=10.5)) as stand:
        calls = [asyncio.create_task(stand.post(json=asking(3))) for _ in range(5)]
        await provider.until(3)
        await settled()
        assert provider.arrived == 3
        provider.go_on.release()
        await provider.until(4)
        for _ in calls:
            provider.go_on.release()
        assert [call.status_code for call in await asyncio.gather(*calls)].count(200) == 5
        assert stand.ledger.spent_usd == 5.0


async def test_a_call_that_does_not_fit_goes_alone_and_crosses_by_itself_only():
    provider = held(output=100)
    async with standing(provider, prices=PRICES, budget=Budget(usd=10)) as stand:
        answers = await at_once(stand, provider, 4, going=1, json=asking(128_000))
        assert answers == [200, 402, 402, 402]
        assert provider.arrived == 1


@pytest.mark.parametrize(
    "body",
    [
        {"model": "m"},
        {"model": "m", "max_tokens": -1},
        {"model": "m", "max_tokens": 5, "n_predict": -1},
        {"model": "m", "max_tokens": 5, "n": "9"},
    ],
)
async def test_a_call_without_a_bound_can_come_to_the_models_whole_context(body):
    provider = held()
    async with standing(provider, prices=PRICES, budget=Budget(usd=2500)) as stand:
        await at_once(stand, provider, 3, going=2, json=body)  # 1000 tokens each


@pytest.mark.parametrize(
    "extra",
    [
        {"previous_response_id": "resp_1"},
        {"messages": [{"content": [{"type": "image_url", "image_url": {"url": "https://x"}}]}]},
        {"input": [{"type": "input_file", "file_id": "f"}]},
        {"tools": [{"type": "web_search"}]},
        {"tools": [{"googleSearch": {}}]},
        {"conversation": {"id": "c"}},
        {"messages": "\\u0061"},
    ],
    ids=repr,
)
async def test_what_a_request_refers_to_can_be_as_large_as_the_context(extra):
    provider = held(0)
    async with standing(provider, "openai", prices=BY_INPUT, budget=Budget(usd=60_000)) as stand:
        body = json.dumps(asking(**extra)).replace("\\\\u", "\\u").encode()
        await at_once(stand, provider, 2, going=1, path=PATHS["openai"], content=body)


@pytest.mark.parametrize(
    "extra",
    [
        {"tools": [{"name": "fetch", "input_schema": {"properties": {"url": {"type": "string"}}}}]},
        {"messages": [{"content": [{"type": "image_url", "image_url": {"url": "data:a/b;x"}}]}]},
        {"messages": 'they said "url": "https://x"'},
        {"previous_response_id": None},
    ],
    ids=repr,
)
async def test_what_only_looks_like_a_reference_costs_no_parallel_calls(extra):
    provider = held(0)
    async with standing(provider, "openai", prices=BY_INPUT, budget=Budget(usd=60_000)) as stand:
        path, body = PATHS["openai"], asking(**extra)
        await at_once(stand, provider, 2, going=2, path=path, json=body)


async def test_several_answers_are_reserved_as_several():
    provider = held()
    async with standing(provider, "openai-compat", prices=PRICES, budget=Budget(usd=10)) as stand:
        body = {"model": "m", "max_tokens": 3, "n": 3}
        await at_once(stand, provider, 2, going=1, path=PATHS["openai-compat"], json=body)


@pytest.mark.parametrize(
    ("dear", "usd"),
    [("input = 0, output = 4_000_000", 10), ("input = 1_000_000, output = 0", 3000)],
)
async def test_the_dearest_model_a_request_names_is_reserved(dear, usd):
    prices = load_prices(f"[openrouter]\nm = {{ input = 0, output = 1 }}\ndear = {{ {dear} }}")
    provider = held()
    async with standing(provider, "openrouter", prices=prices, budget=Budget(usd=usd)) as stand:
        body = {"model": "m", "models": ["dear"], "max_tokens": 2}
        await at_once(stand, provider, 2, going=1, path=PATHS["openrouter"], json=body)


async def test_a_client_that_owes_its_body_holds_up_nobody():
    """R-6: the budget is asked when the body is there, not before."""
    reply = replying(used("anthropic", 2))
    async with standing(reply, prices=PRICES, budget=Budget(usd=100)) as stand:
        _, writer = await stand.connect()
        writer.write(request(body=json.dumps(asking(128_000)).encode())[:-1])
        await asyncio.sleep(0.05)
        async with asyncio.timeout(2):
            assert (await stand.post(json=asking(128_000))).status_code == 200
        writer.close()


async def test_a_client_that_leaves_while_it_waits_is_not_sent_and_not_charged():
    provider = held()
    async with standing(provider, prices=PRICES, budget=Budget(usd=10)) as stand:
        warm = [asyncio.create_task(stand.post(json=asking(1))) for _ in range(2)]
        await provider.until(2)  # two connections that could be used at once
        provider.go_on.release()
        provider.go_on.release()
        await asyncio.gather(*warm)
        first = asyncio.create_task(stand.post(json=asking(128_000)))
        await provider.until(3)
        _, writer = await stand.connect()
        writer.write(request(body=json.dumps(asking(9)).encode()))
        await asyncio.sleep(0.05)
        writer.close()
        gone = await stand.record(3)
        assert "client left" in gone.error
        assert (gone.cost_usd, gone.cost_kind) == (None, None)
        provider.go_on.release()
        assert (await first).status_code == 200
        provider.go_on.release()
        assert (await stand.post(json=asking(1))).status_code == 200
        assert provider.arrived == 4
