"""What a call costs: by the table, by the provider's word, and how sure that is."""

from __future__ import annotations

import json

import pytest

from relay.budget import Budget
from relay.prices import load_prices
from tests.relay.paid_calls import DELTA, PATHS, PRICES, START, STREAM, asking, replying, used
from tests.relay.stand import plain, request, saying, saying_and_closing, sse, standing

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-compat"])
async def test_a_call_costs_what_the_table_says_and_that_is_exact(provider):
    async with standing(replying(used(provider, 2)), provider, prices=PRICES) as stand:
        assert (await stand.post(PATHS[provider], json=asking())).status_code == 200
        record = await stand.record()
        assert (record.cost_usd, record.cost_kind) == (3.0, "exact")
        assert (stand.ledger.spent_usd, stand.ledger.spent_is_lower_bound) == (3.0, False)
        assert stand.ledger.tokens == 1_000_002


async def test_each_call_of_a_run_is_added_up():
    async with standing(replying(used("anthropic", 2)), prices=PRICES) as stand:
        for _ in range(3):
            await stand.post(json=asking())
        await stand.record(3)
        assert stand.ledger.spent_usd == 9.0


@pytest.mark.parametrize(
    ("usage", "cost", "kind"),
    [
        ({"cost": 0.25}, 0.25, "reported"),
        ({"cost": 0}, 0.0, "reported"),
        ({"cost": 0.25, "is_byok": False}, 0.25, "reported"),
        (
            {
                "cost": 0.01,
                "is_byok": True,
                "cost_details": {"upstream_inference_cost": 0.5},
            },
            0.51,
            "reported",
        ),
        ({"cost": 0, "is_byok": True, "cost_details": {}}, 3.0, "lower_bound"),
        ({"cost": 0, "is_byok": True}, 3.0, "lower_bound"),
        ({}, 3.0, "lower_bound"),
        ({"cost": -1}, 3.0, "lower_bound"),
        ({"cost": True}, 3.0, "lower_bound"),
        ({"cost": "0.1"}, 3.0, "lower_bound"),
        ({"cost": 1e300}, 3.0, "lower_bound"),
    ],
    ids=repr,
)
async def test_a_cost_the_provider_reports_outranks_the_table(usage, cost, kind):
    """R-9: with one's own key OpenRouter's cost is 0, and the real one stands beside it."""
    reply = replying(used("openrouter", 2, **usage))
    async with standing(reply, "openrouter", prices=PRICES) as stand:
        await stand.post(PATHS["openrouter"], json=asking())
        record = await stand.record()
        assert (record.cost_usd, record.cost_kind) == (pytest.approx(cost), kind)


@pytest.mark.parametrize("cost", [b"NaN", b"Infinity", b"1e999", b"-0.5"])
async def test_a_cost_that_is_no_sum_of_money_never_lets_a_run_go_on(cost):
    """R-9: a NaN once disabled the ceiling."""
    body = b'{"usage":{"prompt_tokens":1,"completion_tokens":1,"cost":' + cost + b"}}"
    async with standing(replying(body), "openrouter", budget=Budget(usd=1)) as stand:
        assert (await stand.post(PATHS["openrouter"], json=asking())).status_code == 200
        assert (await stand.record()).cost_kind == "unknown"
        assert (await stand.post(PATHS["openrouter"], json=asking())).status_code == 402


async def test_a_provider_that_reports_no_cost_cannot_make_its_calls_free():
    reply = replying(used("anthropic", 2, cost=0))
    async with standing(reply, prices=PRICES) as stand:
        await stand.post(json=asking())
        assert (await stand.record()).cost_usd == 3.0


@pytest.mark.parametrize("status", ["400 Bad Request", "429 Too Many", "500 Oops", "529 Busy"])
async def test_an_error_costs_nothing_and_frees_what_was_reserved(status):
    reply = replying({"error": {}}, status)
    async with standing(reply, prices=PRICES, budget=Budget(usd=5)) as stand:
        for number in range(1, 4):
            await stand.post(json=asking(100))
            record = await stand.record(number)
            assert (record.cost_usd, record.cost_kind) == (0.0, "exact")
        assert (stand.ledger.held_usd, stand.ledger.spent_is_lower_bound) == (0.0, False)


async def test_a_provider_that_cannot_be_reached_costs_nothing():
    async with standing(replying({}), prices=PRICES, budget=Budget(usd=5)) as stand:
        stand.app.client.endpoint = stand.app.client.endpoint.__class__("http", "127.0.0.1", 1)
        assert (await stand.post(json=asking(100))).status_code == 502
        record = await stand.record()
        assert (record.cost_usd, record.cost_kind) == (None, None)
        assert stand.ledger.held_usd == 0


@pytest.mark.parametrize(
    ("body", "extra", "kind"),
    [
        ({"model": "m"}, {}, "unknown"),
        ({"model": "m", "usage": None}, {}, "unknown"),
        ({"model": "m", "usage": {"output_tokens": 2}}, {}, "lower_bound"),
        (used("anthropic", 2), {}, "exact"),
        (used("anthropic", 2, server_tool_use={"web_search_requests": 0}), {}, "exact"),
        (used("anthropic", 2, server_tool_use={"web_search_requests": 1}), {}, "lower_bound"),
        (used("anthropic", 2), {"service_tier": "auto"}, "exact"),
        (used("anthropic", 2), {"service_tier": "priority"}, "unknown"),
        (used("anthropic", 2), {"speed": "fast"}, "unknown"),
        (used("anthropic", 2), {"inference_geo": "us"}, "lower_bound"),
        (used("anthropic", 2), {"messages": '"speed":"fast","service_tier":"x"'}, "exact"),
    ],
    ids=repr,
)
async def test_what_is_not_known_to_the_end_is_never_called_exact(body, extra, kind):
    async with standing(replying(body), prices=PRICES) as stand:
        await stand.post(json=asking(**extra))
        record = await stand.record()
        assert record.cost_kind == kind
        assert (record.cost_usd is None) == (kind == "unknown")
        assert stand.ledger.spent_is_lower_bound == (kind != "exact")


async def test_tools_that_openai_charges_for_make_the_cost_a_lower_bound():
    async with standing(replying(used("openai", 2)), "openai", prices=PRICES) as stand:
        await stand.post("/v1/responses", json=asking(tools=[{"type": "web_search"}]))
        assert (await stand.record()).cost_kind == "lower_bound"


@pytest.mark.parametrize(
    ("events", "cost", "kind"),
    [([START, DELTA], 3.0, "exact"), ([START], 2.0, "lower_bound"), ([], None, "unknown")],
)
async def test_a_stream_that_ends_before_its_usage_is_a_lower_bound(events, cost, kind):
    reply = saying(plain(sse(*events, {"type": "error"}), *STREAM))
    async with standing(reply, prices=PRICES) as stand:
        await stand.post(json=asking())
        record = await stand.record()
        assert (record.cost_usd, record.cost_kind) == (cost, kind)


@pytest.mark.parametrize(("events", "cost"), [([START], 2.0), ([START, DELTA], 3.0)])
async def test_an_answer_that_is_cut_is_charged_as_far_as_it_came(events, cost):
    """multica#4076: every ending is charged, not only the good one."""
    body = sse(*events)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99999\r\n\r\n"
    async with standing(
        saying_and_closing(head + body), prices=PRICES, budget=Budget(usd=100)
    ) as stand:
        await stand.raw(request(body=json.dumps(asking(50)).encode()))
        record = await stand.record()
        assert (record.cost_usd, record.cost_kind) == (cost, "lower_bound")
        assert stand.ledger.held_usd == pytest.approx(50 - cost, abs=0.1)


async def test_a_large_plain_answer_is_charged():
    """R-9: usage after 300 KB of text once made the next call fail."""
    body = {"content": [{"text": "x" * 300_000}], **used("anthropic", 2)}
    async with standing(replying(body), prices=PRICES, budget=Budget(usd=50)) as stand:
        await stand.post(json=asking())
        assert (await stand.record()).cost_usd == 3.0


@pytest.mark.parametrize(("usd", "kind"), [(0, "exact"), (1, "unknown")])
async def test_a_call_without_usage_costs_nothing_only_where_the_price_is_zero(usd, kind):
    prices = load_prices(f'[anthropic]\n"*" = {{ input = {usd}, output = {usd} }}')
    async with standing(replying(b"{}"), prices=prices) as stand:
        await stand.post(PATHS["anthropic"], json=asking())
        record = await stand.record()
        assert record.cost_kind == kind
        assert record.cost_usd == (0 if kind == "exact" else None)
