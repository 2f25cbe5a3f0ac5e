"""Each rule of a policy is shown, before a relay starts, to refuse something.

A limit that is configured and never consulted looks like one that is never reached.
"""

from __future__ import annotations

from relay.admission import Admitted, Gate, Refusal
from relay.policy import Policy
from relay.rules import judge, spoken_by

_FORBIDDEN = "no model has this name"  # a blank is in no name that a policy takes


class RuleInactive(RuntimeError):
    """A rule does not do what it is there for. No relay may start like this."""


def prove(policy: Policy) -> None:
    """Try each rule of the policy on a request that it must refuse or change.

    Raises:
        RuleInactive: it let the request pass.
    """
    _prove_token(policy)
    for route in (*policy.provider.routes, *policy.extra_routes):
        if route.protocol is not None:
            _prove_route(policy, Admitted(route, b"", _FORBIDDEN if "{" in route.path else ""))


def _prove_token(policy: Policy) -> None:
    scope = {"method": "POST", "raw_target": policy.provider.routes[0].path.encode()}
    gate = Gate(policy.provider, "token", policy.extra_routes)
    wrong = (b"authorization", b"Bearer another")
    right = [(b"x-api-key", b"token"), (b"x-goog-api-key", b"token"), (wrong[0], b"Bearer token")]
    for shown, what in (([wrong], "without"), ([*right, wrong], "with more than")):
        try:
            gate.admit(scope, [(b"host", b"relay"), *shown])
        except Refusal as refusal:
            if refusal.rule == "token":
                continue
        raise RuleInactive(f"a request {what} the run token is not refused")


def _prove_route(policy: Policy, admitted: Admitted) -> None:
    spoken = spoken_by(admitted)
    if policy.allow_models:
        try:
            judge(policy, admitted, b'{"model":"%b"}' % _FORBIDDEN.encode())
        except Refusal as refusal:
            if refusal.rule != "allow-model":
                raise
        else:
            raise RuleInactive(f"--allow-model is not enforced on {admitted.route.path}")
    if policy.max_tokens_cap is not None and spoken is not None:
        model = next(iter(policy.allow_models), "m")
        allowed = Admitted(admitted.route, b"", model if admitted.model else "")
        body, _ = judge(policy, allowed, b'{"model":"%b"}' % model.encode())
        bound = body.output_bound(spoken)
        if bound is None or bound > policy.max_tokens_cap:
            raise RuleInactive(f"--max-tokens-cap is not enforced on {admitted.route.path}")
