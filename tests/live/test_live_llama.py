"""A llama-server of one's own (LLAMA_SERVER=http://host:port): every protocol, for nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from relay.endpoints import is_loopback, parse_endpoint
from tests.engine.running import installed
from tests.live.conftest import Relay, events, is_counted, question, relaying, variable

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]


def upstream() -> list[str]:
    url = variable("LLAMA_SERVER", "the URL of a llama-server, as http://127.0.0.1:8080")
    endpoint = parse_endpoint(url)
    plain = not endpoint.is_tls and not is_loopback(endpoint.host)
    return ["--upstream", url, *(["--insecure-upstream"] if plain else [])]


@pytest.fixture
def llama() -> Iterator[Relay]:
    with relaying("--provider", "openai-compat", *upstream()) as relay:
        yield relay


@pytest.fixture
def model(llama: Relay) -> str:
    """LLAMA_MODEL, else the first that it lists."""
    if chosen := os.environ.get("LLAMA_MODEL"):
        return chosen
    answer = llama.get("/v1/models")
    assert llama.call()["status"] == 200, answer.text
    return str(answer.json()["data"][0]["id"])


def test_a_chat_is_answered_and_counted(llama: Relay, model: str):
    answer = llama.ask("/v1/chat/completions", question(model))
    call = llama.call()

    assert answer.json()["choices"][0]["message"]
    assert is_counted(call), call
    assert call["usage"]["output_tokens"] == answer.json()["usage"]["completion_tokens"]


def test_a_streamed_chat_is_counted_though_its_client_did_not_ask_for_usage(
    llama: Relay, model: str
):
    answer = llama.ask("/v1/chat/completions", question(model, stream=True))
    call = llama.call()

    assert events(answer)[-1] == "[DONE]"
    assert call["bytes_out"] == len(answer.content)
    assert is_counted(call), call


@pytest.mark.parametrize("stream", [False, True])
def test_responses_are_counted(llama: Relay, model: str, stream: bool):
    words = {"model": model, "input": "Answer with the word yes.", "max_output_tokens": 64}
    answer = llama.ask("/v1/responses", {**words, "stream": stream})
    call = llama.call()

    if stream:
        assert events(answer)[-1]["type"] in ("response.completed", "response.incomplete")
    assert is_counted(call), (answer.text[-500:], call)


@pytest.mark.parametrize("stream", [False, True])
def test_messages_are_counted(llama: Relay, model: str, stream: bool):
    answer = llama.ask("/v1/messages", question(model, stream=stream))
    call = llama.call()

    assert is_counted(call), (answer.text[-500:], call)


def test_nothing_is_asked_without_the_run_token(llama: Relay):
    answer = llama.ask("/v1/chat/completions", question("any"), token="another")

    assert answer.status_code == 401
    assert llama.call()["refusal"] == "token"
    assert llama.total()["relayed"] == 0


def test_a_token_budget_ends_after_the_call_that_used_it_up():
    with relaying("--provider", "openai-compat", *upstream(), "--token-budget", "1") as relay:
        model = os.environ.get("LLAMA_MODEL", "any")
        first = relay.ask("/v1/chat/completions", question(model))
        second = relay.ask("/v1/chat/completions", question(model))

        assert (first.status_code, second.status_code) == (200, 402)
        assert relay.call()["completed"]
        assert relay.call()["refusal"] == "budget"


@pytest.mark.engine
def test_a_sealed_agent_works_on_it_and_its_calls_are_counted():
    """The whole way: container, link, relay, and a model that is somebody's own."""
    if shutil.which("docker") is None:
        pytest.skip("it runs on docker, which is not there")
    with installed("docker") as made:
        words = ["run", "-q", "--runtime", "docker", "-w", str(made.work), "--agent", "pi"]
        chosen = ["--model", os.environ.get("LLAMA_MODEL", "rehearsal")]
        made.sanduk(
            *words, "--provider", "openai-compat", *upstream(), *chosen,
            "List the files here and write REPORT.md.", limit_s=500,
        )  # fmt: skip
        shown = made.show()
        assert shown["calls"]["completed"] > 0, shown
        assert any(call["input_tokens"] for call in shown["relay_calls"])
        assert shown["seal"].startswith("sealed")
