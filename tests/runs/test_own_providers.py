"""Providers that an operator adds, as a run meets them."""

from __future__ import annotations

import dataclasses
import io
import json

import msgspec
import pytest

import relay
from runs import credentials, keys, plan, providers
from runs.management.commands import sanduk_auth, sanduk_list
from runs.order import Order
from runs.refusal import Refusal

SECRET = "placeholder-0123456789abcdef"
MINE = """\
[mine]
scheme = "https"
host = "models.example"
key_env = "MINE_API_KEY"
routes = [{ path = "/v1/chat/completions", protocol = "openai-chat" }]
"""
TAKEN = MINE.replace("[mine]", "[anthropic]")
BROKEN = ["[mine", MINE.replace("key_env", "key_variable"), TAKEN]


@pytest.fixture
def own(state):
    """Writes SANDUK_HOME/providers.toml."""
    state.mkdir(mode=0o700)
    return (state / "providers.toml").write_text


def command(module, monkeypatch, *words: str, stdin: str = "") -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
    one = module.Command()
    name = module.__name__.rpartition(".")[2]
    return one.act(**vars(one.create_parser("sanduk", name).parse_args(list(words))))


def test_a_provider_that_needs_a_key_and_names_none_is_refused_before_anything_starts():
    own = dataclasses.replace(relay.get_provider("openai"), name="own", key_env="")

    with pytest.raises(Refusal, match=r"own needs a key and names no variable.*key_env"):
        keys.provider_key(own)


def test_a_provider_that_needs_no_key_gets_none():
    own = dataclasses.replace(relay.get_provider("openai"), key_env="", needs_key=False)

    assert keys.provider_key(own) == ""


def test_list_shows_it_beside_sanduks_own(own, monkeypatch, capsys):
    own(MINE)
    assert command(sanduk_list, monkeypatch, "providers", "--json") == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["mine"]["where"] == "https://models.example"
    assert rows["mine"]["key"] == "MINE_API_KEY"
    assert "anthropic" in rows


@pytest.mark.django_db
def test_its_key_can_be_kept_shown_and_forgotten_by_its_name(own, monkeypatch, capsys):
    own(MINE)
    with pytest.raises(Refusal, match=r"sanduk auth set mine, or export MINE_API_KEY"):
        keys.provider_key(providers.known()["mine"])
    assert command(sanduk_auth, monkeypatch, "set", "mine", stdin=SECRET) == 0
    assert keys.provider_key(providers.known()["mine"]) == SECRET
    assert command(sanduk_auth, monkeypatch, "status") == 0
    assert "MINE_API_KEY        stored       …cdef" in capsys.readouterr().out
    assert command(sanduk_auth, monkeypatch, "clear", "mine") == 0
    assert credentials.stored() == {}
    with pytest.raises(Refusal, match=r"needs a NAME: .*mine"):
        command(sanduk_auth, monkeypatch, "set")


def test_its_key_in_the_environment_is_one_that_must_not_get_out(own, monkeypatch):
    own(MINE)
    monkeypatch.setenv("MINE_API_KEY", SECRET)
    assert SECRET in keys.held_keys()


@pytest.mark.django_db
@pytest.mark.parametrize("text", BROKEN)
def test_a_file_that_cannot_be_used_is_said_and_takes_nothing_else_away(
    own, monkeypatch, capsys, text
):
    own(text)
    assert command(sanduk_list, monkeypatch, "providers") == 0
    listed = capsys.readouterr().out
    assert "providers.toml: " in listed
    assert "api.anthropic.com" in listed
    assert command(sanduk_auth, monkeypatch, "status") == 0
    out, err = capsys.readouterr()
    assert "providers.toml: " in err
    assert "ANTHROPIC_API_KEY" in out
    assert command(sanduk_auth, monkeypatch, "set", "anthropic", stdin=SECRET) == 0
    with pytest.raises(Refusal, match=r"providers\.toml"):
        command(sanduk_auth, monkeypatch, "set", "mine", stdin=SECRET)
    with pytest.raises(Refusal, match=r"providers\.toml"):
        providers.known()


def test_a_variable_named_for_an_upstream_must_be_set(tmp_path, monkeypatch):
    order = Order(
        task="x",
        agent="pi",
        workdir=str(tmp_path / "work"),
        provider="openai-compat",
        model="m",
        upstream="http://127.0.0.1:1",
        upstream_key_env="NOPE",
    )
    provider = plan.make_plan(order).provider
    with pytest.raises(Refusal, match=r"--upstream-key-env NOPE: this variable is empty or not"):
        keys.provider_key(provider)
    monkeypatch.setenv("NOPE", SECRET)
    assert keys.provider_key(provider) == SECRET
    with pytest.raises(Refusal, match="--env NOPE would put a real key"):
        plan.make_plan(msgspec.structs.replace(order, env_names=("NOPE",)))
