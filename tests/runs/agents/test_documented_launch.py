"""How hax, minima and prime are started: what their documents say, for every provider."""

from __future__ import annotations

import json
import re

import pytest

from relay import Provider, get_provider, provider_names
from runs.agents import get_agent
from runs.agents.base import ARGV_ELEMENT_BYTES, AgentRefusal, Launch, Request
from tests.runs.agents.shapes import (
    MESSAGES,
    OPENAI,
    REHEARSAL,
    RELAY,
    RESPONSES,
    TOKEN,
    make_provider,
)

NAMES = ("hax", "minima", "prime")
MODEL = Request(model="some/model:free")
SERVED = [name for name in provider_names() if name != "gemini"]


def launch(
    name: str, provider: Provider | str, request: Request = MODEL, task: str = "do it", **rest: str
) -> Launch:
    agent = get_agent(name)
    asked = get_provider(provider) if isinstance(provider, str) else provider
    agent.check(request, asked)
    agent.check_task(task)
    return agent.launch(request, asked, task=task, **{"root": RELAY, "credential": TOKEN, **rest})


# -- hax ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "own", "variable", "prefix"),
    [
        ("anthropic", "anthropic-compatible", "HAX_ANTHROPIC", "/v1"),
        ("openai", "openai-compatible", "HAX_OPENAI", "/v1"),
        ("openrouter", "openai-compatible", "HAX_OPENAI", "/api/v1"),
        ("openai-compat", "openai-compatible", "HAX_OPENAI", "/v1"),
        ("rehearsal", "openai-compatible", "HAX_OPENAI", "/v1"),
    ],
)
def test_hax_is_told_the_relay_by_variables(provider, own, variable, prefix):
    launched = launch("hax", provider)

    assert launched.argv == (
        "--json",
        f"--provider={own}",
        "--model=some/model:free",
        "do it",
    )
    assert launched.env == {
        f"{variable}_API_KEY": TOKEN,
        f"{variable}_BASE_URL": RELAY + prefix,
        "HAX_CATALOG_URL": "",
        "HAX_NOTIFY": "off",
    }


def test_hax_honours_effort_turns_and_bare():
    launched = launch("hax", OPENAI, Request(effort="high", max_turns=7, bare=True))

    assert launched.argv[2:] == ("--model=gpt-5.6-luna", "--effort=high", "--bare", "do it")
    assert launched.env["HAX_MAX_TURNS"] == "7"


def test_hax_needs_no_model():
    argv = launch("hax", "openrouter", Request()).argv

    assert argv == ("--json", "--provider=openai-compatible", "do it")


# -- minima ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "own", "prefix"),
    [
        ("anthropic", "anthropic", "/v1"),
        ("openai", "openai", "/v1"),
        ("openrouter", "openrouter", "/api/v1"),
        ("openai-compat", "llamacpp", "/v1"),
        ("rehearsal", "llamacpp", "/v1"),
        (make_provider("own-messages", MESSAGES), "anthropic", "/v1"),
        (make_provider("own-responses", RESPONSES), "openai", "/v1"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_minima_is_told_which_of_its_providers_the_relay_stands_for(provider, own, prefix):
    launched = launch("minima", provider)

    assert launched.argv == (
        "--json",
        f"--provider={own}",
        "--model=some/model:free",
        "--prompt=do it",
    )
    assert launched.env == {"MINIMA_API_KEY": TOKEN, "MINIMA_BASE_URL": RELAY + prefix}


def test_minima_honours_turns():
    argv = launch("minima", OPENAI, Request(max_turns=7)).argv

    assert argv[2:] == ("--model=gpt-5.6-luna", "--max-turns=7", "--prompt=do it")


# -- prime -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "api", "base_url"),
    [
        ("anthropic", "anthropic-messages", RELAY),
        ("openai", "openai-completions", f"{RELAY}/v1"),
        ("openrouter", "openai-completions", f"{RELAY}/api/v1"),
        ("openai-compat", "openai-completions", f"{RELAY}/v1"),
        ("rehearsal", "openai-completions", f"{RELAY}/v1"),
        (make_provider("own-responses", RESPONSES), "openai-responses", f"{RELAY}/v1"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_prime_is_told_the_relay_by_its_models_file(provider, api, base_url):
    launched = launch("prime", provider)

    assert launched.argv == (
        "--print",
        "--mode",
        "json",
        "--no-session",
        "--model",
        "sanduk/some/model:free",
        "--",
        "do it",
    )
    models = json.loads(launched.env["SANDUK_MODELS_JSON"])
    assert models == {
        "providers": {
            "sanduk": {
                "name": "sanduk relay",
                "baseUrl": base_url,
                "api": api,
                "apiKey": "PRIME_RELAY_KEY",
                "models": [{"id": "some/model:free"}],
            }
        }
    }
    assert {key: value for key, value in launched.env.items() if key != "SANDUK_MODELS_JSON"} == {
        "PRIME_RELAY_KEY": TOKEN,
        "PI_OFFLINE": "1",
        "PI_SKIP_VERSION_CHECK": "1",
    }


def test_prime_names_the_keys_variable_without_the_dollar_that_pi_needs():
    """With it the name itself was sent as the key."""
    key = {
        name: json.loads(launch(name, "openai").env["SANDUK_MODELS_JSON"])["providers"]["sanduk"][
            "apiKey"
        ]
        for name in ("pi", "prime")
    }

    assert key == {"pi": "$PI_RELAY_KEY", "prime": "PRIME_RELAY_KEY"}


# -- all ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_all_are_known_from_their_documents_only(name):
    assert get_agent(name).from_documents
    assert not get_agent("pi").from_documents


@pytest.mark.parametrize("provider", SERVED)
@pytest.mark.parametrize("name", NAMES)
def test_every_provider_but_geminis_serves_them_and_the_key_is_in_no_argument(name, provider):
    launched = launch(name, provider)

    assert not any(TOKEN in word for word in launched.argv)
    assert [key for key, value in launched.env.items() if value == TOKEN] != []
    assert TOKEN not in repr(launched)
    assert launched.task_on_stdin is get_agent(name).takes_stdin is False


@pytest.mark.parametrize("name", NAMES)
def test_geminis_provider_is_refused_with_those_that_serve(name):
    with pytest.raises(AgentRefusal, match=r"provider gemini serves gemini; try --provider .*open"):
        get_agent(name).check(MODEL, get_provider("gemini"))


@pytest.mark.parametrize("name", NAMES)
def test_without_a_credential_the_key_is_a_word_that_is_none(name):
    env = launch(name, "openai-compat", credential="").env

    assert "none" in env.values()


@pytest.mark.parametrize(
    ("name", "request_", "provider", "words"),
    [
        ("hax", Request(allowed_tools="read"), OPENAI, "hax has no equivalent of --allowed-tools"),
        ("hax", Request(permission_mode="plan"), OPENAI, "no equivalent of --permission-mode"),
        ("hax", Request(effort="max"), OPENAI, "it takes low, medium, high"),
        ("hax", Request(max_turns=0), OPENAI, "at least 1"),
        ("minima", Request(effort="low"), OPENAI, "minima has no equivalent of --effort"),
        ("minima", Request(allowed_tools="read"), OPENAI, "no equivalent of --allowed-tools"),
        ("minima", Request(permission_mode="plan"), OPENAI, "no equivalent of --permission-mode"),
        ("minima", Request(bare=True), OPENAI, "minima has no equivalent of --bare"),
        ("minima", Request(), get_provider("anthropic"), "minima needs --model with provider"),
        ("prime", Request(effort="low"), OPENAI, "prime has no equivalent of --effort"),
        ("prime", Request(max_turns=2), OPENAI, "prime has no equivalent of --max-turns"),
        ("prime", Request(allowed_tools="read"), OPENAI, "no equivalent of --allowed-tools"),
        ("prime", Request(permission_mode="plan"), OPENAI, "no equivalent of --permission-mode"),
        ("prime", Request(bare=True), OPENAI, "prime has no equivalent of --bare"),
        ("prime", Request(), get_provider("openrouter"), "prime needs --model with provider"),
    ],
)
def test_c2_what_they_cannot_honour_is_refused(name, request_, provider, words):
    with pytest.raises(AgentRefusal, match=re.escape(words)):
        get_agent(name).check(request_, provider)


@pytest.mark.parametrize(
    ("name", "task", "tail"),
    [
        ("hax", "-rf /", ("\n-rf /",)),
        ("hax", "plain", ("plain",)),
        ("minima", "-rf /", ("--prompt=-rf /",)),
        ("prime", "-rf /", ("--", "-rf /")),
        ("prime", "@secrets", ("--", "\n@secrets")),
    ],
)
def test_a5_a_task_is_never_read_as_a_flag_or_a_file(name, task, tail):
    assert launch(name, REHEARSAL, task=task).argv[-len(tail) :] == tail


@pytest.mark.parametrize(
    ("name", "task", "most"),
    [
        ("hax", "x", ARGV_ELEMENT_BYTES),
        ("hax", "-", ARGV_ELEMENT_BYTES - 1),
        ("minima", "x", ARGV_ELEMENT_BYTES - len("--prompt=")),
        ("prime", "x", ARGV_ELEMENT_BYTES),
        ("prime", "@", ARGV_ELEMENT_BYTES - 1),
    ],
)
def test_the_longest_task_is_what_fits_its_argument(name, task, most):
    longest = launch(name, REHEARSAL, task=task * most)

    assert len(longest.argv[-1].encode()) == ARGV_ELEMENT_BYTES
    with pytest.raises(AgentRefusal, match=f"at most {most:,} bytes; this one has {most + 1:,}"):
        get_agent(name).check_task(task * (most + 1))


@pytest.mark.parametrize("name", NAMES)
def test_a_task_with_a_nul_byte_is_refused(name):
    with pytest.raises(AgentRefusal, match="no NUL byte"):
        get_agent(name).check_task("a\0b")


@pytest.mark.parametrize("name", NAMES)
def test_empty_values_are_not_asked_for(name):
    empty = Request(effort="", allowed_tools="", permission_mode="", bare=False)

    assert launch(name, REHEARSAL, empty) == launch(name, REHEARSAL, Request())
