"""How opencode, gemini and hermes are started: argv, environment, refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from relay import Provider, Route, get_provider
from runs.agents import get_agent
from runs.agents.base import AgentRefusal, Launch, Request
from tests.runs.agents.shapes import ANTHROPIC, COMPATIBLE, OPENAI, OPENROUTER, RELAY, TOKEN

NAMES = ("opencode", "gemini", "hermes")
GEMINI, REHEARSAL = get_provider("gemini"), get_provider("rehearsal")
PLAIN = Request(model="some/model:free")


def launch(
    name: str, provider: Provider, request: Request = PLAIN, root: str = RELAY, task: str = "do it"
) -> Launch:
    agent = get_agent(name)
    agent.check(request, provider)
    return agent.launch(request, provider, task=task, root=root, credential=TOKEN)


def config_of(launched: Launch) -> dict[str, Any]:
    """What opencode or hermes is told in a variable."""
    [text] = [value for value in launched.env.values() if value.startswith("{")]
    made: dict[str, Any] = json.loads(text)
    return made


# -- opencode ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "driver", "base_url"),
    [
        (ANTHROPIC, "@ai-sdk/anthropic", f"{RELAY}/v1"),
        (OPENAI, "@ai-sdk/openai-compatible", f"{RELAY}/v1"),
        (OPENROUTER, "@ai-sdk/openai-compatible", f"{RELAY}/api/v1"),
        (COMPATIBLE, "@ai-sdk/openai-compatible", f"{RELAY}/v1"),
        (REHEARSAL, "@ai-sdk/openai-compatible", f"{RELAY}/v1"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_opencode_is_told_the_relay_by_its_configuration(provider, driver, base_url):
    launched = launch("opencode", provider)

    assert launched.argv == (
        *("run", "--format", "json", "--auto", "--title", "run"),
        *("--model", "sanduk/some/model:free"),
    )
    assert config_of(launched) == {
        "provider": {
            "sanduk": {
                "npm": driver,
                "name": "sanduk relay",
                "options": {"baseURL": base_url, "apiKey": "{env:OPENCODE_RELAY_KEY}"},
                "models": {"some/model:free": {"name": "some/model:free"}},
            }
        }
    }
    assert launched.env["OPENCODE_RELAY_KEY"] == TOKEN
    assert launched.env["OPENCODE_DISABLE_MODELS_FETCH"] == "1"


@pytest.mark.parametrize(
    ("provider", "option"), [(OPENAI, "reasoningEffort"), (ANTHROPIC, "effort")]
)
def test_opencode_is_told_the_effort_in_the_words_of_the_protocol(provider, option):
    launched = launch("opencode", provider, Request(model="m", effort="max"))

    model = config_of(launched)["provider"]["sanduk"]["models"]["m"]
    assert model == {"name": "m", "options": {option: "max"}}


def test_opencode_is_denied_every_tool_but_the_allowed_ones():
    launched = launch("opencode", OPENAI, Request(allowed_tools="read, bash"))

    assert config_of(launched)["permission"] == {"*": "deny", "read": "allow", "bash": "allow"}


def test_bare_takes_the_workspaces_files_from_opencode():
    plain, bare = launch("opencode", OPENAI), launch("opencode", OPENAI, Request("m", bare=True))

    assert set(bare.env) - set(plain.env) == {
        "OPENCODE_DISABLE_PROJECT_CONFIG",
        "OPENCODE_DISABLE_CLAUDE_CODE",
        "OPENCODE_DISABLE_EXTERNAL_SKILLS",
        "OPENCODE_PURE",
    }


# -- gemini ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "model"),
    [(GEMINI, ()), (REHEARSAL, ("--model=rehearsal",))],
    ids=lambda value: getattr(value, "name", value),
)
def test_gemini_is_told_the_relay_by_a_variable(provider, model):
    launched = launch("gemini", provider, Request())

    assert launched.argv == ("--output-format", "stream-json", "--yolo", "--skip-trust", *model)
    assert launched.env == {"GEMINI_API_KEY": TOKEN, "GOOGLE_GEMINI_BASE_URL": RELAY}


def test_gemini_keeps_a_path_before_the_version():
    route = Route("/google/v1beta/models/{model}:generateContent", protocol="gemini")
    provider = Provider(
        name="gateway",
        scheme="https",
        host="gateway.test",
        port=None,
        prefix="/google/v1beta",
        routes=(route,),
    )

    launched = launch("gemini", provider, root="https://gateway.test")

    assert launched.env["GOOGLE_GEMINI_BASE_URL"] == "https://gateway.test/google"


@pytest.mark.parametrize(("task", "before"), [("/memory show", "\n"), ("@a look", ""), ("-x", "")])
def test_gemini_does_not_take_a_task_for_one_of_its_slash_commands(task, before):
    assert launch("gemini", GEMINI, task=task).before_task == before


# -- hermes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "mode", "base_url"),
    [
        (ANTHROPIC, "anthropic_messages", "http://127.1:8080/v1"),
        (OPENAI, "chat_completions", "http://127.1:8080/v1"),
        (OPENROUTER, "chat_completions", "http://127.1:8080/api/v1"),
        (COMPATIBLE, "chat_completions", "http://127.1:8080/v1"),
        (REHEARSAL, "chat_completions", "http://127.1:8080/v1"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_hermes_is_told_the_relay_by_its_settings(provider, mode, base_url):
    launched = launch("hermes", provider)

    assert launched.argv == ("--yolo", "--oneshot=do it")
    assert launched.env["HERMES_RELAY_KEY"] == TOKEN
    assert launched.env["PIP_NO_INDEX"] == "1"
    config = config_of(launched)
    assert config["model"]["default"] == "some/model:free"
    assert config["model"]["provider"] == "custom:sanduk"
    [custom] = config["custom_providers"]
    assert custom == {
        "name": "sanduk",
        "base_url": base_url,
        "key_env": "HERMES_RELAY_KEY",
        "api_mode": mode,
    }


def test_hermes_in_open_mode_is_told_the_providers_own_address():
    launched = launch("hermes", OPENROUTER, root="https://openrouter.test")

    [custom] = config_of(launched)["custom_providers"]
    assert custom["base_url"] == "https://openrouter.test/api/v1"


def test_hermes_says_how_long_its_task_may_be():
    with pytest.raises(AgentRefusal, match="at most 131,061 bytes; this one has 131,062"):
        get_agent("hermes").check_task("x" * 131_062)
    get_agent("hermes").check_task("x" * 131_061)


# -- all ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_credential_stands_in_no_argument_and_in_no_repr(name):
    launched = launch(name, REHEARSAL)

    assert not any(TOKEN in word for word in launched.argv)
    assert list(launched.env.values()).count(TOKEN) == 1
    assert TOKEN not in repr(launched)


@pytest.mark.parametrize("name", NAMES)
def test_without_a_key_it_is_given_a_word_that_is_none(name):
    agent = get_agent(name)
    launched = agent.launch(PLAIN, REHEARSAL, task="do it", root=RELAY, credential="")

    assert list(launched.env.values()).count("none") == 1


@pytest.mark.parametrize(
    ("name", "stdin"), [("opencode", True), ("gemini", True), ("hermes", False)]
)
def test_the_task_is_where_the_handler_says_it_is(name, stdin):
    launched = launch(name, REHEARSAL)

    assert launched.task_on_stdin is get_agent(name).takes_stdin is stdin
    assert any("do it" in word for word in launched.argv) is not stdin


@pytest.mark.parametrize(
    ("name", "request_", "provider", "words"),
    [
        ("opencode", PLAIN, GEMINI, "opencode speaks openai-chat, anthropic-messages"),
        ("opencode", Request(), ANTHROPIC, "needs --model with provider anthropic"),
        ("opencode", Request("m", effort="none"), OPENAI, "it takes low, medium, high, xhigh, max"),
        ("opencode", Request("m", max_turns=2), OPENAI, "no equivalent of --max-turns"),
        ("opencode", Request("m", permission_mode="plan"), OPENAI, "of --permission-mode"),
        ("opencode", Request("m", allowed_tools="Bash"), OPENAI, "it is called bash"),
        ("gemini", PLAIN, OPENAI, "gemini speaks gemini; .* try --provider gemini or rehearsal"),
        ("gemini", Request(effort="high"), GEMINI, "no equivalent of --effort"),
        ("gemini", Request(max_turns=2), GEMINI, "no equivalent of --max-turns"),
        ("gemini", Request(allowed_tools="x"), GEMINI, "no equivalent of --allowed-tools"),
        ("gemini", Request(permission_mode="plan"), GEMINI, "no equivalent of --permission-mode"),
        ("gemini", Request(bare=True), GEMINI, "no equivalent of --bare"),
        ("hermes", PLAIN, GEMINI, "hermes speaks openai-chat, anthropic-messages"),
        ("hermes", Request(), OPENROUTER, "needs --model with provider openrouter"),
        ("hermes", Request("m", effort="high"), OPENAI, "no equivalent of --effort"),
        ("hermes", Request("m", max_turns=2), OPENAI, "no equivalent of --max-turns"),
        ("hermes", Request("m", allowed_tools="x"), OPENAI, "no equivalent of --allowed-tools"),
        ("hermes", Request("m", permission_mode="plan"), OPENAI, "of --permission-mode"),
        ("hermes", Request("m", bare=True), OPENAI, "no equivalent of --bare"),
    ],
)
def test_what_an_agent_cannot_honour_is_refused(name, request_, provider, words):
    with pytest.raises(AgentRefusal, match=words):
        get_agent(name).check(request_, provider)
