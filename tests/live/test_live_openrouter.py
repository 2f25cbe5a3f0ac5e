"""OpenRouter's router of free models (OPENROUTER_API_KEY): it costs nothing and tells its cost."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.live.conftest import Relay, is_counted, question, relaying, variable

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]
MODEL = os.environ.get("OPENROUTER_MODEL", "openrouter/free")


@pytest.fixture
def router() -> Iterator[Relay]:
    variable("OPENROUTER_API_KEY", "a key; the router of free models takes no money")
    with relaying("--provider", "openrouter", "--allow-model", MODEL) as relay:
        yield relay


@pytest.mark.parametrize("stream", [False, True])
def test_what_it_costs_is_what_the_provider_reports(router: Relay, stream: bool):
    answer = router.ask("/api/v1/chat/completions", question(MODEL, stream=stream))
    call = router.call()

    if answer.status_code == 429:
        pytest.skip("the free models are busy: the provider's rate limit")
    assert is_counted(call), (answer.text[-500:], call)
    assert call["cost_kind"] == "reported"
    assert call["cost_usd"] == call["reported_cost_usd"] == 0
    assert call["model_answered"]


def test_another_model_is_refused_and_not_asked(router: Relay):
    answer = router.ask("/api/v1/chat/completions", question("some/other-model"))

    assert answer.status_code == 403
    assert router.call()["refusal"] == "allow-model"
    assert router.total()["relayed"] == 0
