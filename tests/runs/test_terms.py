"""The rules of a run: told before it starts, and of its record afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runs import narration, preview, terms
from runs.management.commands import sanduk_show
from runs.order import Order
from runs.plan import make_plan
from tests.factories import make_run

# every rule of a sealed run, as an order holds it, as one types it, and as scripts read it
RULES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "budget_usd": (2.5, "--budget 2.5", {"budget_usd": 2.5}),
    "token_budget": (9000, "--token-budget 9000", {"budget_tokens": 9000}),
    "budget_strict": (True, "--budget-strict", {"budget_strict": True}),
    "unpriced": ("refuse", "--unpriced refuse", {"unpriced": "refuse"}),
    "allow_models": (("m-1",), "--allow-model m-1", {"allow_models": ["m-1"]}),
    "max_tokens_cap": (800, "--max-tokens-cap 800", {"max_output_tokens_per_call": 800}),
    "max_calls": (7, "--max-calls 7", {"max_calls": 7}),
    "max_body_mb": (3, "--max-body 3", {"max_body_mib": 3}),
    "allow_paths": (("/v1/x=anthropic-messages", "/v1/y=anthropic-messages"),
                    "--allow-path /v1/x=anthropic-messages --allow-path /v1/y=anthropic-messages",
                    {"allow_paths": ["/v1/x=anthropic-messages", "/v1/y=anthropic-messages"]}),
    "allow_hosts": (("a.example",), "--allow-host a.example", {"allow_hosts": ["a.example"]}),
    "egress": ("warn", "--egress warn", {"egress": "warn"}),
    "log_bodies": (True, "--log-bodies", {"log_bodies": True}),
    "upstream_idle_timeout_s": (60, "--upstream-idle-timeout 60s", {"upstream_idle_timeout_s": 60}),
    "skip_key_check": (True, "--skip-key-check", {"skip_key_check": True}),
}  # fmt: skip


def ordered(tmp_path: Path, **fields: Any) -> Order:
    given = {"task": "x", "workdir": str(tmp_path / "w"), "agent": "claude",
             "provider": "anthropic", **fields}  # fmt: skip
    return Order(**given)


def shown(capsys, *words: str) -> str:
    command = sanduk_show.Command()
    command.act(**vars(command.create_parser("sanduk", "sanduk_show").parse_args(list(words))))
    return capsys.readouterr().out


@pytest.mark.django_db
def test_every_rule_that_was_set_is_told_before_and_after_the_run(tmp_path: Path, capsys):
    order = ordered(tmp_path, **{field: value for field, (value, *_) in RULES.items()})
    plan = make_plan(order)
    run = make_run(state="ended", order=json.loads(json.dumps(order.stored())))

    flags = [told for _, told, _ in RULES.values()]
    fields = {name: value for *_, told in RULES.values() for name, value in told.items()}
    before, after = dict(preview.lines(plan))["rules"], shown(capsys, run.uid)
    for flag in flags:
        assert flag in before
        assert flag in after
    assert json.loads(json.dumps(preview.as_json(plan)["rules"])) == fields
    assert narration.as_json(run)["rules"] == fields
    assert json.loads(shown(capsys, run.uid, "--json"))["rules"] == fields


@pytest.mark.django_db
def test_what_was_not_set_is_not_told(tmp_path: Path, capsys):
    plan = make_plan(ordered(tmp_path))
    run = make_run(state="ended", order=plan.order.stored())

    assert terms.as_json(plan.order.stored()) == {}
    assert dict(preview.lines(plan))["rules"] == "none beyond the defaults"
    assert "rules" not in shown(capsys, run.uid)
    assert terms.as_flags({"of": "another version"}) == ""


@pytest.mark.parametrize(
    ("fields", "words", "door"),
    [
        ({}, "none", None),
        ({"allow_hosts": ("b.example", "[2606:4700::11]:8443", "a.example:80")},
         "open to [2606:4700::11]:8443, a.example:80, b.example:443",
         {"lets_every_host_pass": False,
          "hosts": ["[2606:4700::11]:8443", "a.example:80", "b.example:443"]}),
        ({"egress": "warn"}, "OPEN to every public host, recorded (--egress warn)",
         {"lets_every_host_pass": True, "hosts": []}),
    ],
)  # fmt: skip
def test_the_egress_door_is_named_before_it_is_open(tmp_path: Path, fields, words, door):
    plan = make_plan(ordered(tmp_path, **fields))

    assert dict(preview.lines(plan))["egress door"] == words
    assert preview.as_json(plan)["egress_door"] == door


def test_what_would_be_started_is_in_fields_of_their_own_with_units(tmp_path: Path):
    (tmp_path / "lent").mkdir()
    plan = make_plan(ordered(tmp_path, mounts=(f"{tmp_path}/lent:/data",), memory="2g", cpus=0.5))
    told = preview.as_json(plan)

    assert all(name.isidentifier() for name in told)
    assert told["limits"] | {"host_cpus": 0} == {
        "cpus": 0.5, "host_cpus": 0, "memory_bytes": 2 * 2**30, "timeout_s": 900,
        "idle_timeout_s": None,
    }  # fmt: skip
    assert told["mounts"] == [{"source": f"{tmp_path}/lent", "target": "/data", "read_only": True}]
    assert (told["uid"], told["gid"]) == (plan.workspace.uid, plan.workspace.gid)
    assert (told["task_on_stdin"], type(told["argv"])) == (True, list)
