"""An answer its client left: read to its end, charged, and in nobody's way."""

from __future__ import annotations

import asyncio

import pytest

from relay.budget import Budget
from tests.relay.paid_calls import PRICES, asking, left_in_the_middle, slowly
from tests.relay.stand import standing

pytestmark = pytest.mark.anyio


async def test_an_answer_its_client_left_is_read_to_its_end_and_charged():
    """litellm#14457: neither lost nor guessed."""
    go_on = asyncio.Event()
    async with standing(slowly(go_on), prices=PRICES, budget=Budget(usd=100)) as stand:
        await left_in_the_middle(stand, 50)
        assert not stand.records
        go_on.set()
        record = await stand.record()
        assert (record.cost_usd, record.cost_kind) == (6.0, "exact")
        assert "client left" in record.error
        assert not record.completed
        assert stand.ledger.held_usd == 0


async def test_an_answer_that_does_not_end_in_time_is_closed_and_its_reservation_kept():
    go_on = asyncio.Event()
    async with standing(
        slowly(go_on), prices=PRICES, budget=Budget(usd=100), drain_timeout_s=0.05
    ) as stand:
        await left_in_the_middle(stand, 50)
        record = await stand.record()
        assert (record.cost_usd, record.cost_kind) == (2.0, "lower_bound")
        assert stand.ledger.held_usd == pytest.approx(48, abs=0.1)
        assert stand.ledger.spent_is_lower_bound
        go_on.set()
        async with asyncio.timeout(5):
            await stand.provider.gone.wait()  # not kept for the next call


async def test_an_answer_that_is_still_read_holds_up_nobody_who_fits():
    """R-6."""
    go_on = asyncio.Event()
    async with standing(slowly(go_on), prices=PRICES, budget=Budget(usd=100)) as stand:
        await left_in_the_middle(stand, 50)
        other = asyncio.create_task(stand.post(json=asking(20)))
        async with asyncio.timeout(5):
            while len(stand.provider.seen) < 2:
                stand.provider.asked.clear()
                await stand.provider.asked.wait()
        go_on.set()
        assert (await other).status_code == 200


async def test_without_a_budget_an_answer_its_client_left_is_closed_at_once():
    go_on = asyncio.Event()
    async with standing(slowly(go_on), prices=PRICES) as stand:
        await left_in_the_middle(stand, 50)
        record = await stand.record()
        assert (record.cost_usd, record.cost_kind) == (2.0, "lower_bound")


async def test_a_relay_that_reads_an_answer_to_its_end_still_stops_at_once():
    go_on = asyncio.Event()
    async with standing(slowly(go_on), prices=PRICES, budget=Budget(usd=100)) as stand:
        await left_in_the_middle(stand, 50)
    assert stand.stopped_in < 1.0
    assert (await stand.record()).cost_kind == "lower_bound"


async def test_a_call_its_client_left_counts_as_one():
    """openclaw/lobster#131: a client that gives up and tries again is stopped by the number."""
    go_on = asyncio.Event()
    async with standing(slowly(go_on), prices=PRICES, max_calls=2) as stand:
        for _ in range(2):
            await left_in_the_middle(stand, 50)
        refused = await stand.post(json=asking())
        assert (refused.status_code, refused.json()["error"]["rule"]) == (403, "max-calls")
        go_on.set()
