"""A person before an agent's own interface: what it is started with."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from relay import get_provider
from runs import box
from runs.agents import agent_names, get_agent
from runs.agents.base import SEED_BYTES, AgentRefusal, Launch, Request, Sitting

PROVIDERS = {"claude": "anthropic", "codex": "openai", "gemini": "gemini"}
TOKEN = "run-token-0123456789abcdefghij"


def sits(name: str, *, model: str | None = None, seed: str = "", asks: bool = False) -> Launch:
    return get_agent(name).sitting(
        Request(model=model), get_provider(PROVIDERS[name]),
        at=Sitting("/work", seed, asks), root="http://127.0.0.1:8080", credential=TOKEN,
    )  # fmt: skip


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_first_message_that_begins_with_a_dash_is_no_flag(name: str):
    argv = sits(name, seed="--version please").argv

    assert "--version please" not in argv[:-1]
    if name == "gemini":
        assert argv[-1] == "--prompt-interactive=--version please"
    else:
        assert argv[-2:] == ("--", "--version please")


@pytest.mark.parametrize("name", PROVIDERS)
def test_without_a_first_message_nothing_is_said_for_the_person(name: str):
    argv = sits(name).argv

    assert "--" not in argv
    assert not any(word.startswith("--prompt-interactive") for word in argv)


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        ("claude", "--dangerously-skip-permissions"),
        ("codex", "--dangerously-bypass-approvals-and-sandbox"),
        ("gemini", "--yolo"),
    ],
)
def test_it_asks_before_it_acts_only_when_that_is_wanted(name: str, flag: str):
    assert flag in sits(name).argv
    assert flag not in sits(name, asks=True).argv


@pytest.mark.parametrize("name", PROVIDERS)
def test_the_model_is_the_one_that_was_named(name: str):
    assert "--model=some-model" in sits(name, model="some-model").argv


@pytest.mark.parametrize("name", PROVIDERS)
def test_the_token_is_in_no_argument(name: str):
    launch = sits(name, seed="hello")

    assert TOKEN in launch.env.values()
    assert not any(TOKEN[-20:] in word for word in launch.argv)
    assert TOKEN[-20:] not in repr(launch)


def test_claude_knows_its_key_and_directory_before_it_asks():
    known = json.loads(sits("claude").home_files[".claude.json"])

    assert known["hasCompletedOnboarding"] is True
    assert known["customApiKeyResponses"]["approved"] == [TOKEN[-20:]]
    assert known["projects"] == {"/work": {"hasTrustDialogAccepted": True}}


@pytest.mark.parametrize("name", [each for each in agent_names() if each not in PROVIDERS])
def test_before_another_nobody_sits(name: str):
    agent = get_agent(name)

    with pytest.raises(AgentRefusal, match="no interface of its own"):
        agent.check_seed("")
    assert not agent.sits


def test_a_first_message_that_fits_in_no_argument_is_refused():
    get_agent("claude").check_seed("x" * SEED_BYTES)
    with pytest.raises(AgentRefusal, match="at most 100,000 bytes"):
        get_agent("claude").check_seed("é" * SEED_BYTES)


def test_files_of_its_home_are_written_once_and_keep_to_what_the_image_has(
    tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(box, "runtime_directory", lambda: tmp_path)
    texts = {".a/it's $HOME": "it's `one`\n", ".b": "ours"}
    mounts = box.make("a" * 12).agent_files(
        uid=1000, gid=1000, home="/h", env={}, stdin=None, home_files=texts
    )
    (script,) = [each.source for each in mounts if each.target == "/run/sanduk/home"]
    home = tmp_path / "home of it"
    home.mkdir()
    (home / ".b").write_text("the image's")

    subprocess.run(["sh", script], env={"HOME": str(home), "PATH": "/usr/bin:/bin"}, check=True)

    assert (home / ".a/it's $HOME").read_text() == "it's `one`\n"
    assert (home / ".b").read_text() == "the image's"
