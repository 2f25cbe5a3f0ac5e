"""litellm#27381: a limiter that was never registered looks like one that is never reached."""

from __future__ import annotations

import pytest

from relay import selftest
from relay.admission import Gate, Refusal
from relay.app import create_app
from relay.credential import Credential
from relay.judging import Body
from relay.policy import Policy
from relay.providers import get_provider, provider_names
from relay.records import Ledger
from relay.rules import judge
from relay.selftest import RuleInactive, prove

LIMITED = {"allow_models": frozenset({"m"}), "max_tokens_cap": 5}


@pytest.mark.parametrize("name", provider_names())
def test_every_rule_is_active_on_every_route_of_every_provider(name):
    prove(Policy(get_provider(name)))
    prove(Policy(get_provider(name), **LIMITED))


def start(**rules) -> None:
    policy = Policy(get_provider("gemini"), **rules)
    create_app(policy, Credential("key"), "token", Ledger())


def test_a_relay_whose_rule_on_models_is_not_consulted_does_not_start(monkeypatch):
    def lax(policy, admitted, text):
        return judge(Policy(policy.provider, max_tokens_cap=policy.max_tokens_cap), admitted, text)

    monkeypatch.setattr(selftest, "judge", lax)
    with pytest.raises(RuleInactive, match="--allow-model"):
        start(**LIMITED)


def test_a_relay_whose_cap_is_not_consulted_does_not_start(monkeypatch):
    monkeypatch.setattr(Body, "limit_output", lambda *_: False)
    with pytest.raises(RuleInactive, match="--max-tokens-cap"):
        start(**LIMITED)


def test_a_relay_that_takes_any_token_does_not_start(monkeypatch):
    monkeypatch.setattr(Gate, "_check_token", lambda *_: None)
    with pytest.raises(RuleInactive, match="token"):
        start()


def test_a_relay_that_takes_a_token_beside_another_does_not_start(monkeypatch):
    def lax(gate, route, headers):
        if (b"x-api-key", b"token") not in headers:
            raise Refusal(401, "token", "no")

    monkeypatch.setattr(Gate, "_check_token", lax)
    with pytest.raises(RuleInactive, match="more than the run token"):
        start()
