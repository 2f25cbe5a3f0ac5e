"""`--agent-key-env` and `--agent-base-url-env`, for every agent there is."""

from __future__ import annotations

import dataclasses

import pytest

from relay import get_provider
from runs.agents import get_agent
from runs.agents.base import AgentRefusal, Request
from runs.agents.registry import BUILT_IN
from tests.runs.agents.shapes import RELAY, TOKEN
from tests.runs.agents.test_launch import InArgv

AGENTS = (*BUILT_IN, "scripted")
PROVIDER = get_provider("rehearsal")
PLAIN = Request(model="some-model")
TELLS_BY_NAME = {"codex", "hermes", "opencode", "pi", "prime"}  # their settings name the variable


def launch(name: str, **asked: str):
    agent = get_agent(name)
    request = dataclasses.replace(PLAIN, **asked)
    agent.check(request, PROVIDER)
    return agent.launch(request, PROVIDER, task="do it", root=RELAY, credential=TOKEN)


def holding(env, value: str) -> set[str]:
    return {name for name, held in env.items() if held == value}


@pytest.mark.parametrize("name", AGENTS)
def test_the_key_is_in_the_variable_that_was_named_and_in_no_other(name):
    usual, named = launch(name), launch(name, key_env="MY_KEY")

    [before] = holding(usual.env, TOKEN)
    assert holding(named.env, TOKEN) == {"MY_KEY"}
    assert before not in named.env
    told = " ".join([*named.argv, *named.env.values()])
    assert before not in told
    assert ("MY_KEY" in told) is (name in TELLS_BY_NAME)


@pytest.mark.parametrize("name", AGENTS)
def test_the_address_is_in_the_variable_that_was_named(name):
    usual, named = launch(name), launch(name, base_url_env="MY_URL")

    address = named.env["MY_URL"]
    assert address.startswith(("http://127.0.0.1:8080", "http://127.1:8080"))
    before = holding(usual.env, address)
    assert holding(named.env, address) == {"MY_URL"}
    # It is told there or elsewhere, and where it is told elsewhere nothing else changes.
    rest = {key: value for key, value in named.env.items() if key != "MY_URL"}
    assert rest == {key: value for key, value in usual.env.items() if key not in before}
    assert bool(before) is (name not in TELLS_BY_NAME)


@pytest.mark.parametrize("flag", ["key_env", "base_url_env"])
@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("variable", ["A B", "1A", "A=B", "A-B", "Ä", "A\n", "$A"])
def test_what_is_no_name_of_a_variable_is_refused(name, flag, variable):
    words = "--agent-" + flag.replace("_", "-")

    with pytest.raises(AgentRefusal, match=f"{words} .* is no name of a variable"):
        get_agent(name).check(dataclasses.replace(PLAIN, **{flag: variable}), PROVIDER)


@pytest.mark.parametrize("name", AGENTS)
def test_one_variable_does_not_hold_both(name):
    with pytest.raises(AgentRefusal, match="both say SAME"):
        launch(name, key_env="SAME", base_url_env="SAME")


@pytest.mark.parametrize("flag", ["key_env", "base_url_env"])
def test_an_agent_that_does_not_honour_them_refuses_the_flag_by_its_name(flag):
    words = "in-argv has no equivalent of --agent-" + flag.replace("_", "-")

    with pytest.raises(AgentRefusal, match=words):
        InArgv().check(Request(model="m", **{flag: "NAME"}), PROVIDER)
