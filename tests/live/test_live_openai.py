"""OpenAI itself (OPENAI_MODEL and OPENAI_API_KEY): what it costs is a few tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.live.conftest import Relay, events, is_counted, relaying, variable

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]


@pytest.fixture
def model() -> str:
    variable("OPENAI_API_KEY", "the key of the account that pays")
    return variable("OPENAI_MODEL", "the model to ask, which costs a few tokens")


@pytest.fixture
def openai(model: str) -> Iterator[Relay]:
    """It starts only after the key check has passed."""
    with relaying("--provider", "openai", "--max-tokens-cap", "512", "--max-calls", "2") as relay:
        yield relay


def words(model: str, **more: Any) -> dict[str, Any]:
    return {"model": model, "input": "Answer with the word yes.", "max_output_tokens": 256, **more}


def test_a_streamed_response_is_counted_as_the_provider_counts_it(openai: Relay, model: str):
    answer = openai.ask("/v1/responses", words(model, stream=True))
    call = openai.call()
    last = events(answer)[-1]

    assert last["type"] in ("response.completed", "response.incomplete"), answer.text[-500:]
    assert is_counted(call), call
    told = last["response"]["usage"]
    assert call["usage"]["input_tokens"] == told["input_tokens"]
    assert call["usage"]["output_tokens"] == told["output_tokens"]
    assert call["bytes_out"] == len(answer.content)


def test_a_response_at_once_is_counted_and_a_priced_model_has_a_cost(openai: Relay, model: str):
    answer = openai.ask("/v1/responses", words(model))
    call = openai.call()

    assert is_counted(call), (answer.text[:500], call)
    if call["cost_kind"] == "exact":
        assert call["cost_usd"] > 0
    else:
        assert call["cost_kind"] in ("lower_bound", "unknown")  # not in the price table


def test_a_streamed_chat_is_counted_though_its_client_did_not_ask(openai: Relay, model: str):
    body = {"model": model, "stream": True, "max_completion_tokens": 256}
    body["messages"] = [{"role": "user", "content": "Answer with the word yes."}]
    answer = openai.ask("/v1/chat/completions", body)
    call = openai.call()

    assert answer.status_code == 200, answer.text[:500]
    assert events(answer)[-1] == "[DONE]"
    assert is_counted(call), call
