"""What a call costs and who may make the next one, through a relay and its provider."""

from __future__ import annotations

import asyncio
import json

import pytest

from relay.budget import Budget
from relay.prices import load_prices
from relay.providers import get_provider
from tests.relay.stand import TOKEN, plain, request, saying, saying_and_closing, sse, standing

pytestmark = pytest.mark.anyio
# One dollar for a million tokens, one for each output token: bodies weigh next to nothing.
PRICES = load_prices(
    "\n".join(
        f"[{provider}]\nm = {{ input = 1, output = 1_000_000, context = 1000 }}"
        for provider in ("anthropic", "openai", "openrouter", "openai-compat")
    )
)
PATHS = {
    "anthropic": "/v1/messages",
    "openai": "/v1/responses",
    "openrouter": "/api/v1/chat/completions",
    "openai-compat": "/v1/chat/completions",
}
STREAM = ("content-type: text/event-stream",)


def used(provider: str, output: int | None, **more) -> dict:
    """An answer of one million tokens in (a dollar) and so many out."""
    counts = {"input_tokens": 1_000_000, "output_tokens": output}
    if provider in ("openrouter", "openai-compat"):
        counts = {"prompt_tokens": 1_000_000, "completion_tokens": output}
    return {"model": "m", "usage": {**counts, **more}}


def replying(body: dict | bytes, status: str = "200 OK"):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return saying(plain(content, "content-type: application/json", status=status))


def asking(output: int | None = 1, **more) -> dict:
    return {"model": "m", "max_tokens": output, "max_output_tokens": output, **more}


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


START = {"type": "message_start", "message": used("anthropic", 1)}
DELTA = {"type": "message_delta", "usage": {"output_tokens": 2}}


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


# -- the ceiling -----------------------------------------------------------------------------------
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


class Held:
    """A provider that answers each call when it is told to."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.arrived = 0
        self.changed = asyncio.Event()
        self.go_on = asyncio.Semaphore(0)

    async def __call__(self, seen, writer) -> None:
        self.arrived += 1
        self.changed.set()
        await self.go_on.acquire()
        writer.write(self.body)

    async def until(self, number: int) -> None:
        async with asyncio.timeout(5):
            while self.arrived < number:
                self.changed.clear()
                await self.changed.wait()


def held(output: int = 2) -> Held:
    content = json.dumps({"model": "m", "usage": {"input_tokens": 0, "output_tokens": output}})
    return Held(plain(content.encode(), "content-type: application/json"))


async def settled(stand) -> None:
    """Long enough for a call that may go to reach the provider."""
    await asyncio.sleep(0.1)


async def test_calls_stay_parallel_while_they_fit_and_the_next_waits():
    """litellm#34732."""
    provider = held(output=1)
    async with standing(provider, prices=PRICES, budget=Budget(usd=10.5)) as stand:
        calls = [asyncio.create_task(stand.post(json=asking(3))) for _ in range(5)]
        await provider.until(3)
        await settled(stand)
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
        calls = [asyncio.create_task(stand.post(json=asking(128_000))) for _ in range(4)]
        await provider.until(1)
        await settled(stand)
        assert provider.arrived == 1
        provider.go_on.release()
        answers = sorted([call.status_code for call in await asyncio.gather(*calls)])
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
        calls = [asyncio.create_task(stand.post(json=body)) for _ in range(3)]
        await provider.until(2)  # 1000 tokens each
        await settled(stand)
        assert provider.arrived == 2
        for _ in calls:
            provider.go_on.release()
        await asyncio.gather(*calls)


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
    prices = load_prices("[openai]\nm = { input = 1_000_000, output = 0, context = 50_000 }")
    provider = held(0)
    budget = Budget(usd=60_000)
    async with standing(provider, "openai", prices=prices, budget=budget) as stand:
        body = json.dumps(asking(**extra)).replace("\\\\u", "\\u").encode()
        calls = [asyncio.create_task(stand.post("/v1/responses", content=body)) for _ in range(2)]
        await provider.until(1)
        await settled(stand)
        assert provider.arrived == 1
        provider.go_on.release()
        provider.go_on.release()
        await asyncio.gather(*calls)


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
    prices = load_prices("[openai]\nm = { input = 1_000_000, output = 0, context = 50_000 }")
    provider = held(0)
    budget = Budget(usd=60_000)
    async with standing(provider, "openai", prices=prices, budget=budget) as stand:
        calls = [
            asyncio.create_task(stand.post("/v1/responses", json=asking(**extra))) for _ in range(2)
        ]
        await provider.until(2)
        provider.go_on.release()
        provider.go_on.release()
        await asyncio.gather(*calls)


async def test_several_answers_are_reserved_as_several():
    provider = held()
    async with standing(provider, "openai-compat", prices=PRICES, budget=Budget(usd=10)) as stand:
        body = {"model": "m", "max_tokens": 3, "n": 3}
        path = PATHS["openai-compat"]
        calls = [asyncio.create_task(stand.post(path, json=body)) for _ in range(2)]
        await provider.until(1)
        await settled(stand)
        assert provider.arrived == 1
        provider.go_on.release()
        provider.go_on.release()
        await asyncio.gather(*calls)


@pytest.mark.parametrize(
    ("dear", "usd"),
    [("input = 0, output = 4_000_000", 10), ("input = 1_000_000, output = 0", 3000)],
)
async def test_the_dearest_model_a_request_names_is_reserved(dear, usd):
    prices = load_prices(f"[openrouter]\nm = {{ input = 0, output = 1 }}\ndear = {{ {dear} }}")
    provider = held()
    async with standing(provider, "openrouter", prices=prices, budget=Budget(usd=usd)) as stand:
        path = PATHS["openrouter"]
        body = {"model": "m", "models": ["dear"], "max_tokens": 2}
        calls = [asyncio.create_task(stand.post(path, json=body)) for _ in range(2)]
        await provider.until(1)
        await settled(stand)
        assert provider.arrived == 1
        provider.go_on.release()
        provider.go_on.release()
        await asyncio.gather(*calls)


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


def slowly(go_on: asyncio.Event):
    """A stream whose end comes when it is allowed to."""

    async def answer(seen, writer):
        first, last = sse(START), sse({"type": "message_delta", "usage": {"output_tokens": 5}})
        length = f"content-length: {len(first) + len(last)}"
        head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{length}\r\n\r\n"
        writer.write(head.encode() + first)
        await writer.drain()
        await go_on.wait()
        writer.write(last)

    return answer


async def left_in_the_middle(stand, output: int) -> None:
    reader, writer = await stand.connect()
    writer.write(request(body=json.dumps(asking(output)).encode()))
    await reader.readuntil(b"message_start")
    writer.transport.abort()
    await asyncio.sleep(0.05)


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


# -- strict ----------------------------------------------------------------------------------------
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


# -- models without a price ------------------------------------------------------------------------
@pytest.mark.parametrize("body", [{"model": "new"}, {}, {"model": "m", "fallbacks": ["new"]}])
async def test_a_model_without_a_price_is_refused_where_nobody_reports_its_cost(body):
    """litellm#20615: said, not guessed."""
    async with standing(replying({}), prices=PRICES, budget=Budget(usd=1)) as stand:
        told = await stand.post(json=body)
        assert (told.status_code, stand.provider.seen) == (403, [])
        message = told.json()["error"]["message"]
        assert "prices.toml" in message
        assert "--unpriced serial" in message
        assert not stand.ledger.exhausted


async def test_a_strict_budget_takes_no_model_without_a_price_even_one_at_a_time():
    budget = Budget(usd=1, strict=True, unpriced="serial")
    async with standing(replying({}), "openrouter", budget=budget) as stand:
        told = await stand.post(PATHS["openrouter"], json={"model": "x"})
        assert (told.status_code, told.json()["error"]["code"]) == (403, "unpriced")
        assert "--unpriced" not in told.json()["error"]["message"]


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
            await settled(stand)
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


async def test_serial_can_be_chosen_where_it_is_not_and_then_the_sum_is_a_lower_bound():
    content = used("anthropic", 2)
    provider = Held(plain(json.dumps({**content, "model": "new"}).encode()))
    budget = Budget(usd=1, unpriced="serial")
    async with standing(provider, prices=PRICES, budget=budget) as stand:
        calls = [asyncio.create_task(stand.post(json={"model": "new"})) for _ in range(2)]
        await provider.until(1)
        await settled(stand)
        assert provider.arrived == 1
        provider.go_on.release()
        provider.go_on.release()
        assert [call.status_code for call in await asyncio.gather(*calls)] == [200, 200]
        assert (stand.ledger.spent_usd, stand.ledger.spent_is_lower_bound) == (0.0, True)


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


async def test_a_call_its_client_left_counts_as_one():
    """openclaw/lobster#131: a client that gives up and tries again is stopped by the number."""
    go_on = asyncio.Event()
    async with standing(slowly(go_on), prices=PRICES, max_calls=2) as stand:
        for _ in range(2):
            await left_in_the_middle(stand, 50)
        refused = await stand.post(json=asking())
        assert (refused.status_code, refused.json()["error"]["rule"]) == (403, "max-calls")
        go_on.set()


async def test_under_a_budget_a_body_that_can_be_read_in_two_ways_is_refused():
    async with standing(replying({}), prices=PRICES, budget=Budget(usd=1)) as stand:
        told = await stand.post(content=b'{"model":"m","max_tokens":5,"max_tokens":9}')
        assert (told.status_code, stand.provider.seen) == (400, [])
