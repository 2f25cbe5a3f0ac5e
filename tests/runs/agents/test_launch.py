"""How each agent is started: argv, environment, refusals."""

from __future__ import annotations

import json

import pytest

from relay import Provider
from runs.agents import get_agent
from runs.agents.base import ARGV_ELEMENT_BYTES, Agent, AgentRefusal, Launch, Request
from tests.runs.agents.shapes import (
    ANTHROPIC,
    COMPATIBLE,
    OPENAI,
    OPENROUTER,
    REHEARSAL,
    RELAY,
    TOKEN,
)

PLAIN = Request()
REAL = ("claude", "codex", "pi")


def launch(name: str, provider: Provider, request: Request = PLAIN, root: str = RELAY) -> Launch:
    agent = get_agent(name)
    agent.check(request, provider)
    return agent.launch(request, provider, task="do it", root=root, credential=TOKEN)


def settings_of(launched: Launch) -> dict[str, object]:
    """What codex is told by `-c key=value`; the values are TOML that is JSON too."""
    argv = launched.argv
    pairs = [argv[i + 1].split("=", 1) for i, word in enumerate(argv) if word == "-c"]
    return {key: json.loads(value) for key, value in pairs}


def models_of(launched: Launch) -> dict[str, object]:
    made: dict[str, object] = json.loads(launched.env["SANDUK_MODELS_JSON"])
    return made["providers"]["sanduk"]  # type: ignore[index,no-any-return]


# -- claude ------------------------------------------------------------------------------------


def test_claude_is_pointed_at_the_relays_root_with_the_run_token():
    launched = launch("claude", ANTHROPIC)

    assert launched.argv == (
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--dangerously-skip-permissions",
    )
    assert launched.env == {
        "ANTHROPIC_API_KEY": TOKEN,
        "ANTHROPIC_BASE_URL": RELAY,
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    assert launched.task_on_stdin


def test_claude_in_open_mode_finds_anthropic_by_itself():
    assert (
        "ANTHROPIC_BASE_URL" not in launch("claude", ANTHROPIC, root="https://anthropic.test").env
    )


def test_claude_in_open_mode_is_told_a_base_url_that_is_not_anthropics():
    launched = launch("claude", ANTHROPIC, root="https://gateway.test")

    assert launched.env["ANTHROPIC_BASE_URL"] == "https://gateway.test"


def test_claude_takes_the_providers_default_model():
    assert "--model=rehearsal" in launch("claude", REHEARSAL).argv


def test_claude_does_not_take_a_task_for_one_of_its_slash_commands():
    command = get_agent("claude").launch(
        PLAIN, ANTHROPIC, task="/compact this", root=RELAY, credential="t"
    )
    assert command.before_task == "\n"
    assert launch("claude", ANTHROPIC).before_task == ""


def test_claude_honours_every_flag():
    request = Request(
        model="opus", effort="max", max_turns=3, allowed_tools="Read Bash(git *)", bare=True
    )

    argv = launch("claude", ANTHROPIC, request).argv

    assert argv[4:] == (
        "--bare",
        "--dangerously-skip-permissions",
        "--model=opus",
        "--effort=max",
        "--allowed-tools=Read Bash(git *)",
        "--max-turns=3",
    )


def test_a_permission_mode_replaces_the_skipping_of_permissions():
    argv = launch("claude", ANTHROPIC, Request(permission_mode="dontAsk")).argv

    assert "--permission-mode=dontAsk" in argv
    assert "--dangerously-skip-permissions" not in argv


# -- codex -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "base_url", "model"),
    [
        (OPENAI, f"{RELAY}/v1", "gpt-5.6-luna"),
        (COMPATIBLE, f"{RELAY}/v1", "gpt-5.6-luna"),
        (REHEARSAL, f"{RELAY}/v1", "rehearsal"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_codex_is_told_the_relay_by_flags(provider, base_url, model):
    launched = launch("codex", provider)

    assert launched.argv[:6] == (
        "exec",
        "--json",
        "--sandbox",
        "danger-full-access",
        "--ignore-user-config",
        "--skip-git-repo-check",
    )
    assert launched.argv[-2:] == (f"--model={model}", "-")
    assert settings_of(launched) == {
        "model_provider": "sanduk",
        "model_providers.sanduk.name": "sanduk relay",
        "model_providers.sanduk.base_url": base_url,
        "model_providers.sanduk.wire_api": "responses",
        "model_providers.sanduk.env_key": "CODEX_RELAY_KEY",
        "analytics.enabled": False,
        "check_for_update_on_startup": False,
        "features.plugins": False,
        "features.apps": False,
    }
    assert launched.env == {"CODEX_RELAY_KEY": TOKEN, "CODEX_DISABLE_UPDATE_CHECK": "1"}
    assert launched.task_on_stdin


def test_codex_reads_no_key_variable_when_there_is_no_key():
    launched = get_agent("codex").launch(
        Request(), COMPATIBLE, task="do it", root=RELAY, credential=""
    )

    assert "model_providers.sanduk.env_key" not in settings_of(launched)
    assert "CODEX_RELAY_KEY" not in launched.env


def test_codex_is_told_the_effort():
    launched = launch("codex", OPENAI, Request(effort="xhigh", model="gpt-6"))

    assert settings_of(launched)["model_reasoning_effort"] == "xhigh"
    assert "--model=gpt-6" in launched.argv


# -- pi ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "api", "base_url"),
    [
        (ANTHROPIC, "anthropic-messages", RELAY),
        (OPENAI, "openai-completions", f"{RELAY}/v1"),
        (OPENROUTER, "openai-completions", f"{RELAY}/api/v1"),
        (COMPATIBLE, "openai-completions", f"{RELAY}/v1"),
        (REHEARSAL, "openai-completions", f"{RELAY}/v1"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_pi_is_told_the_relay_by_its_models_file(provider, api, base_url):
    launched = launch("pi", provider, Request(model="some/model:free"))

    assert launched.argv == (
        "--print",
        "--mode",
        "json",
        "--no-session",
        "--no-approve",
        "--model",
        "sanduk/some/model:free",
    )
    assert models_of(launched) == {
        "name": "sanduk relay",
        "baseUrl": base_url,
        "api": api,
        "apiKey": "$PI_RELAY_KEY",
        "models": [{"id": "some/model:free"}],
    }
    assert launched.env["PI_RELAY_KEY"] == TOKEN
    assert launched.env["PI_OFFLINE"] == "1"
    assert launched.task_on_stdin


def test_pi_gets_a_reasoning_model_when_an_effort_is_asked_for():
    launched = launch("pi", OPENAI, Request(effort="max"))

    assert launched.argv[-2:] == ("--thinking", "max")
    [model] = models_of(launched)["models"]
    assert model == {
        "id": "gpt-5.6-luna",
        "reasoning": True,
        "thinkingLevelMap": {"xhigh": "xhigh", "max": "max"},
    }


def test_pi_honours_bare_and_allowed_tools():
    argv = launch("pi", REHEARSAL, Request(bare=True, allowed_tools="read,bash")).argv

    assert argv[7:] == (
        "--tools",
        "read,bash",
        "--no-context-files",
        "--no-extensions",
        "--no-skills",
        "--no-prompt-templates",
    )


# -- all ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REAL)
def test_the_credential_stands_in_no_argument_and_in_no_repr(name):
    launched = launch(name, REHEARSAL)

    assert not any(TOKEN in word for word in launched.argv)
    assert TOKEN in "".join(launched.env.values())
    assert TOKEN not in repr(launched)


@pytest.mark.parametrize("name", REAL)
def test_the_task_stands_in_no_argument(name):
    assert "do it" not in launch(name, REHEARSAL).argv


@pytest.mark.parametrize("name", [*REAL, "scripted"])
def test_what_an_agent_says_of_its_standard_input_is_what_it_does(name):
    assert launch(name, REHEARSAL).task_on_stdin is get_agent(name).takes_stdin


@pytest.mark.parametrize(
    ("name", "request_", "provider", "words"),
    [
        ("claude", Request(), OPENAI, "claude speaks anthropic-messages; provider openai serves"),
        ("codex", Request(), ANTHROPIC, "codex speaks openai-responses"),
        ("codex", Request(), OPENROUTER, "codex speaks openai-responses"),
        ("claude", Request(effort="minimal"), ANTHROPIC, "it takes low, medium, high, xhigh, max"),
        ("claude", Request(permission_mode="yolo"), ANTHROPIC, "it takes acceptEdits"),
        ("claude", Request(max_turns=0), ANTHROPIC, "at least 1"),
        ("codex", Request(effort="huge"), OPENAI, "does not know --effort 'huge'"),
        ("codex", Request(max_turns=2), OPENAI, "codex has no equivalent of --max-turns"),
        ("codex", Request(allowed_tools="x"), OPENAI, "no equivalent of --allowed-tools"),
        ("codex", Request(permission_mode="plan"), OPENAI, "no equivalent of --permission-mode"),
        ("codex", Request(bare=True), OPENAI, "codex has no equivalent of --bare"),
        ("pi", Request(), ANTHROPIC, "pi needs --model with provider anthropic"),
        ("pi", Request(max_turns=2), OPENAI, "pi has no equivalent of --max-turns"),
        ("pi", Request(permission_mode="plan"), OPENAI, "no equivalent of --permission-mode"),
        ("pi", Request(effort="none"), OPENAI, "does not know --effort 'none'"),
        ("pi", Request(model="m", effort="max"), ANTHROPIC, "say --effort high"),
        ("pi", Request(allowed_tools="Read,bash"), OPENAI, "it is called read"),
    ],
)
def test_what_an_agent_cannot_honour_is_refused(name, request_, provider, words):
    with pytest.raises(AgentRefusal, match=words):
        get_agent(name).check(request_, provider)


@pytest.mark.parametrize("name", REAL)
def test_empty_values_are_not_asked_for(name):
    empty = Request(effort="", allowed_tools="", permission_mode="", bare=False)

    assert launch(name, REHEARSAL, empty) == launch(name, REHEARSAL)


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("task", ["x" * (1 << 20), "-rf /", "a \0 b", 'quo"te\n'])
def test_a_task_on_standard_input_may_be_anything(name, task):
    get_agent(name).check_task(task)


@pytest.mark.parametrize("task", ["", " \n\t"])
@pytest.mark.parametrize("name", REAL)
def test_an_empty_task_is_refused(name, task):
    with pytest.raises(AgentRefusal, match="the task is empty"):
        get_agent(name).check_task(task)


class InArgv(Agent):
    name = "in-argv"
    recipe = "none"
    protocols = ("openai-chat",)

    def launch(self, request, provider, *, task, root, credential):
        return Launch(("run", "--", task))

    def reader(self):
        raise NotImplementedError


def test_a_task_in_argv_may_be_as_long_as_one_argument():
    InArgv().check_task("x" * ARGV_ELEMENT_BYTES)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("ü" * (ARGV_ELEMENT_BYTES // 2 + 1), "at most 131,071 bytes; this one has 131,072"),
        ("a\0b", "no NUL byte"),
    ],
    ids=["too long", "a NUL"],
)
def test_a_task_that_does_not_fit_an_argument_is_refused(task, words):
    with pytest.raises(AgentRefusal, match=words):
        InArgv().check_task(task)
