"""What a provider says a key has spent today."""

from __future__ import annotations

import json

import pytest

import relay
from relay.endpoints import Endpoint
from relay.reported_usage import usage_today
from tests.relay.stand import Provider, free_port, plain, saying

pytestmark = pytest.mark.anyio
KEY = "sk-very-secret"


async def told(answer: bytes, name: str = "openrouter"):
    provider = Provider(saying(answer))
    async with provider.running():
        found = await usage_today(
            relay.get_provider(name),
            relay.Credential(KEY, "THE_KEY"),
            upstream=Endpoint("http", "127.0.0.1", provider.port),
        )
    assert KEY not in repr(found)
    return found, provider


def answer(data: object, status: str = "200 OK") -> bytes:
    return plain(json.dumps({"data": data}).encode(), status=status)


async def test_credits_and_what_an_own_key_paid_are_one_figure():
    found, provider = await told(answer({"usage_daily": 1.25, "byok_usage_daily": 0.5, "usage": 9}))

    assert (found.usd, found.text) == (1.75, "")
    (seen,) = provider.seen
    assert (seen.method, seen.target) == ("GET", "/api/v1/key")
    assert seen.values("authorization") == [f"Bearer {KEY}"]


@pytest.mark.parametrize(
    "data",
    [None, [], "x", {}, {"usage_daily": None}, {"usage_daily": True}, {"usage_daily": "1"},
     {"usage_daily": -1}, {"usage_daily": float("nan")}, {"usage_daily": float("inf")}],
)  # fmt: skip
async def test_a_strange_answer_is_no_figure(data):
    found, _ = await told(answer(data))

    assert found.usd is None
    assert found.text.startswith("openrouter ")


@pytest.mark.parametrize("status", ["401 No", "302 Found", "500 Oh"])
async def test_a_refusal_is_named_by_its_status(status):
    found, provider = await told(answer({"usage_daily": 1}, status))

    assert (found.usd, found.text) == (None, f"openrouter answered {status[:3]}")
    assert len(provider.seen) == 1


async def test_a_provider_that_cannot_be_reached_is_no_error():
    upstream = Endpoint("http", "127.0.0.1", free_port())
    credential = relay.Credential(KEY, "THE_KEY")
    found = await usage_today(relay.get_provider("openrouter"), credential, upstream=upstream)

    assert found.usd is None
    assert found.text.startswith("openrouter cannot be asked: ")


async def test_others_tell_it_to_no_key_and_are_not_asked():
    found, provider = await told(answer({"usage_daily": 1}), "openai")

    assert (found.usd, provider.seen) == (None, [])
    assert found.text == "openai tells no key what it has spent"
