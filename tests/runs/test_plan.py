"""Everything that can be refused without starting anything, each in one line that names the fix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runs.order import Order
from runs.plan import Plan, make_plan
from runs.refusal import Refusal
from tests.accounts import needs_root

KEY = "sk-canary-0123456789"


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A plan needs no engine and no key."""
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


@pytest.fixture
def order(tmp_path: Path):
    def make(**fields: Any) -> Order:
        given = {
            "task": "look around",
            "workdir": str(tmp_path / "work"),
            "agent": "pi",
            "provider": "rehearsal",
        }
        return Order(**{**given, **fields})

    return make


def refused(order: Order) -> str:
    with pytest.raises(Refusal) as refusal:
        make_plan(order)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"task": ""}, "task is empty"),
        ({"task": " \n\t"}, "task is empty"),
        ({"task": "a\0b"}, "NUL byte"),
        ({"task": "caf\udce9"}, "not UTF-8"),
        ({"model": "caf\udce9"}, "not UTF-8"),
        ({"agent": "nobody"}, "no agent is called 'nobody'"),
        ({"agent": "no.such.module:Agent"}, "cannot be loaded"),
        ({"provider": "nobody"}, "there is no provider 'nobody'; there are"),
        ({"runtime": "nothing"}, "no engine is called"),
        ({"runtime": "no.such.module:Engine"}, "cannot be loaded"),
        ({"mode": "secret"}, "there are open, key-safe, sealed"),
        ({"recipe": "nothing"}, "nothing"),
        ({"agent": "claude", "provider": "openai"}, "provider openai serves"),
        ({"agent": "codex", "provider": "anthropic", "model": "m"}, "provider anthropic serves"),
        ({"base_url": "https://x"}, "--base-url means nothing in sealed mode"),
        ({"network": "mine"}, "--network means nothing in sealed mode"),
        ({"mode": "key-safe", "network": "mine"}, "--network means nothing in key-safe mode"),
        ({"upstream": "https://x"}, "--upstream means nothing with the rehearsal model"),
        ({"mode": "open"}, "rehearsal model lives in the relay"),
        ({"mode": "open", "provider": "openai", "upstream": "https://x"}, "use --base-url"),
        ({"insecure_upstream": True}, "--insecure-upstream means nothing"),
        ({"no_network": True}, "pi cannot work without its model"),
        ({"no_network": True, "upstream": "https://x"}, "there is no relay"),
        ({"no_network": True, "network": "mine"}, "means nothing in no-network mode"),
        ({"recipe": "pi", "image": "x"}, "exclude each other"),
        ({"recipe": "pi", "containerfile": "x"}, "exclude each other"),
        ({"recipe": "codex"}, "recipe codex is for agent codex, not pi"),
        ({"containerfile": "/no/such/file"}, "there is no such file"),
        ({"containerfile": "/"}, "--containerfile /: this is a directory; name the file in it"),
        ({"containerfile": "/dev/null"}, "this is no regular file"),
        ({"containerfile": "/etc/passwd", "image": "a:b:c"}, "no image can be called so"),
        ({"image": "Node:22"}, "--image Node:22: this is no name of an image, like node:22-slim"),
        ({"containerfile": "~nobody-of-that-name/f"}, "no such home"),
        ({"image": "x", "rebuild": True}, "--rebuild means nothing with --image"),
        ({"cpus": 0}, "--cpus"),
        ({"cpus": -1}, "--cpus"),
        ({"cpus": float("nan")}, "--cpus"),
        ({"cpus": float("inf")}, "--cpus"),
        ({"memory": "lots"}, "--memory"),
        ({"memory": "0"}, "--memory"),
        ({"memory": "-1g"}, "--memory"),
        ({"memory": "1.5g"}, "--memory"),
        ({"max_turns": 0, "agent": "claude"}, "--max-turns"),
        ({"max_turns": 3}, "--max-turns"),
        ({"agent": "codex", "allowed_tools": "Read"}, "--allowed-tools"),
        ({"allowed_tools": "Read"}, "it is called read"),
        ({"permission_mode": "plan"}, "--permission-mode"),
        ({"effort": "nonsense"}, "nonsense"),
        ({"env": {"BAD NAME": "x"}}, "no variable name"),
        ({"env": {"A=B": "x"}}, "no variable name"),
        ({"env": {"": "x"}}, "no variable name"),
        ({"env": {"A;touch x": "x"}}, "no variable name"),
        ({"env_names": ("$(id)",)}, "no variable name"),
        ({"agent_key_env": "PATH"}, "--agent-key-env PATH would take a variable away"),
        ({"agent_base_url_env": "LD_PRELOAD"}, "--agent-base-url-env LD_PRELOAD"),
        ({"model": "a\nb"}, "--model holds a line break"),
        ({"mounts": ("nonsense",)}, "--mount"),
        ({"workdir": "/"}, "--workdir"),
    ],
)
def test_a_contradiction_or_an_unknown_name_is_refused(order, fields, words):
    """C-1, C-2: what cannot be honoured is refused, never dropped."""
    assert words in refused(order(**fields))


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_a_plan_needs_no_engine_and_no_key(order, engine):
    plan = make_plan(order(runtime=engine, provider="openai"))

    assert plan.engine.name == engine
    assert plan.link_image is not None


def test_an_engine_that_shares_no_sockets_is_refused_for_relayed_modes(order):
    assert "cannot share a socket" in refused(order(runtime="apple"))
    assert make_plan(order(runtime="apple", mode="open", provider="openai")).link_image is None


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("ftp://x", "scheme"),
        ("https://user:secret@x", "no user name"),
        ("https://x/path", "no path"),
        ("https://x?q=1", "no query"),
        ("https://x:99999", "port"),
        ("https://x:ten", "must look like"),
        ("https://[::1", "must look like"),
        ("http://10.1.2.3:8080", "plaintext http"),
        ("", None),
    ],
)
@pytest.mark.parametrize("flag", ["upstream", "base_url"])
def test_an_address_that_would_leak_the_key_or_is_none_is_refused(order, flag, address, words):
    """C-4, C-6: no plaintext, no user name, no path, no odd port; for both flags."""
    fields = {
        "provider": "openai",
        flag: address,
        "mode": "open" if flag == "base_url" else "sealed",
    }
    if words is None:
        assert make_plan(order(**fields))
        return
    reason = refused(order(**fields))
    assert words in reason
    assert reason.startswith(f"--{flag.replace('_', '-')}: ")
    assert "secret" not in reason


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:8080", "http://localhost:1", "http://[::1]:8080", "https://x.example"],
)
def test_a_base_url_is_where_the_agent_calls_in_open_mode(order, address):
    plan = make_plan(order(mode="open", provider="openai", base_url=address))

    launch = plan.launch("the key")

    assert address in json.dumps([launch.argv, dict(launch.env)])


def test_plaintext_to_another_machine_is_allowed_to_who_says_so(order):
    address = "http://10.1.2.3:8080"

    assert make_plan(order(provider="openai", upstream=address, insecure_upstream=True))
    assert make_plan(
        order(provider="openai", mode="open", base_url=address, insecure_upstream=True)
    )


# -- keys --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["sealed", "key-safe"])
@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"])
def test_a_providers_key_is_not_passed_into_a_relayed_container(order, mode, name):
    """C-4: `-e OPENAI_API_KEY` passed the real key into a sealed run."""
    assert "would put a real key" in refused(order(mode=mode, env_names=(name,)))


@pytest.mark.parametrize("how", ["variable", "file"])
def test_a_key_under_another_name_is_not_passed_either(order, monkeypatch, tmp_path, how):
    if how == "variable":
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    else:
        (tmp_path / "key").write_text(f"{KEY}\n")
        monkeypatch.setenv("ANTHROPIC_API_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.setenv("MINE", f"Bearer {KEY}")

    for fields in ({"env": {"MINE": f"x{KEY}y"}}, {"env_names": ("MINE",)}):
        reason = refused(order(**fields))
        assert "--env MINE holds a provider's key" in reason
        assert KEY not in reason


def test_in_open_mode_a_key_may_be_passed(order, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)

    assert make_plan(
        order(mode="open", provider="openai", env={"A": KEY}, env_names=("ANTHROPIC_API_KEY",))
    )


# -- the task ----------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["pi", "codex", "claude"])
def test_a_task_of_1_mib_is_taken_by_the_real_agents(order, agent):
    """L-17: over 128 KiB it failed once everything was up."""
    plan = make_plan(order(agent=agent, task="x" * 2**20))

    assert plan.launch("token").task_on_stdin
    assert all(len(word) < 131_072 for word in plan.launch("token").argv)


@pytest.mark.parametrize("agent", ["pi", "codex", "claude"])
def test_a_task_that_begins_with_a_dash_is_no_flag(order, agent):
    """A-5."""
    launch = make_plan(order(agent=agent, task="--version please")).launch("token")

    assert launch.task_on_stdin or launch.argv[-1].startswith("--version")
    assert not any(word.startswith("--version") for word in launch.argv[:-1])


def test_the_report_instruction_is_part_of_the_task_unless_not_wanted(order):
    assert "REPORT.md" in make_plan(order()).task
    assert make_plan(order(report_instruction=False)).task == "look around"


# -- what a plan holds -------------------------------------------------------------------------


def test_the_run_token_goes_to_the_agent_and_the_relay_is_its_address(order):
    launch = make_plan(order()).launch("the-token")

    assert not any("the-token" in word for word in launch.argv)
    assert "the-token" not in repr(launch)
    assert "127.0.0.1:8080" in json.dumps([launch.argv, dict(launch.env)])


def test_planning_touches_nothing(order, state: Path, tmp_path: Path):
    before = sorted(tmp_path.rglob("*"))

    plan: Plan = make_plan(order())

    assert plan.workspace.created
    assert sorted(tmp_path.rglob("*")) == before
    assert not state.exists()


@needs_root
def test_the_agent_is_never_root(order, tmp_path: Path):
    plan = make_plan(order())

    assert plan.workspace.uid != 0
    (tmp_path / "work").mkdir()
    assert "no agent runs as root" in refused(order())


@pytest.mark.parametrize("name", ["scripted-offline"])
def test_without_a_network_there_is_no_provider_and_no_credential(order, name):
    plan = make_plan(order(agent=name, no_network=True))

    assert plan.provider is None
    assert plan.link_image is None
    assert not plan.checks_calls
    assert plan.launch("").env["RELAY_TOKEN"] == ""


def test_an_order_is_stored_without_its_task_and_comes_back(order):
    from runs.order import restored

    given = order(env={"A": "b"}, mounts=("/x:/data",), max_turns=None, cpus=0.5)

    stored = json.loads(json.dumps(given.stored()))

    assert "task" not in stored
    assert restored(stored, given.task) == given
