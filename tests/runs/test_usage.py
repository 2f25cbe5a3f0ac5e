"""What all runs together used, held beside what the provider says."""

from __future__ import annotations

import datetime as dt
import json

import pytest

import relay
from runs import clock, usage
from runs.management.commands import sanduk_usage
from runs.models import RelayCall
from runs.refusal import Refusal
from tests.factories import make_run

pytestmark = pytest.mark.django_db
NOON = dt.datetime(2026, 3, 10, 12, 0, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def at_noon(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(clock, "now", lambda: NOON)
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)


def call(
    at: dt.datetime = NOON, *, provider: str = "openrouter", usd: float | None = 0.5,
    kind: str = "reported", **fields,
) -> None:  # fmt: skip
    values = {
        "method": "POST", "path": "/x", "protocol": "openai-chat", "status": 200,
        "input_tokens": 100, "output_tokens": 10, "model_asked": "big", **fields,
    }  # fmt: skip
    run = make_run(state="ended", provider=provider)
    RelayCall.objects.create(
        run=run, sequence=1, started_at=at, cost_usd=usd, cost_kind=kind, **values
    )


def act(capsys, **options) -> str:
    defaults = {"days": 7, "provider": "", "models": False, "compare": False, "json": False}
    assert sanduk_usage.Command().act(**{**defaults, **options}) == 0
    return capsys.readouterr().out


def test_calls_are_summed_by_the_day_they_began_in_utc():
    call(NOON)
    call(NOON, usd=0.25, input_tokens=None)
    call(dt.datetime(2026, 3, 10, 0, 30, tzinfo=dt.timezone(dt.timedelta(hours=2))))  # the 9th

    first, second = usage.used_since(dt.date(2026, 3, 1))

    assert (first.day, first.calls, first.cost_usd) == (dt.date(2026, 3, 10), 2, 0.75)
    assert (first.input_tokens, first.output_tokens, first.untold) == (100, 20, 0)
    assert (second.day, second.calls) == (dt.date(2026, 3, 9), 1)
    assert len(usage.used_since(dt.date(2026, 3, 10))) == 1


def test_what_never_went_out_or_costs_nothing_is_not_counted():
    call(refusal="the budget is spent", status=402)
    call(protocol="", kind="")
    call(provider="rehearsal", kind="exact", usd=0)

    assert usage.used_since(dt.date(2026, 3, 1)) == []


def test_models_are_told_apart_by_what_answered():
    call(model_answered="big-2026")
    call(model_answered="")

    models = [row.model for row in usage.used_since(dt.date(2026, 3, 1), by_model=True)]
    assert models == ["big", "big-2026"]


@pytest.mark.parametrize(
    ("kind", "usd", "words"),
    [
        ("reported", 0.5, "$1.0000"),
        ("lower_bound", 0.25, "≥ $0.7500 (1 of 2 calls untold)"),
        ("unknown", None, "≥ $0.5000 (1 of 2 calls untold)"),
    ],
)
def test_a_cost_that_is_not_whole_says_so(capsys, kind, usd, words):
    call()
    call(kind=kind, usd=usd)

    assert act(capsys).rstrip().endswith(f"  {words}")


def test_nothing_used_is_said_and_is_an_empty_list(capsys):
    assert act(capsys) == ""
    assert json.loads(act(capsys, json=True)) == {"since": "2026-03-04", "used": []}


def told(monkeypatch, usd: float | None, text: str = "") -> list[str]:
    """Let the provider say this; what it was asked for is noted."""
    asked = []

    async def usage_today(provider, credential):
        asked.append(provider.name)
        return relay.ReportedUsage(usd, text)

    monkeypatch.setattr(relay, "usage_today", usage_today)
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-some-key")
    return asked


@pytest.mark.parametrize(
    ("says", "words"),
    [
        (0.5, "metered here $0.5000; no gap"),
        (2.0, "gap $1.5000 more: calls of this key that did not go through here"),
        (0.2, "gap $0.3000 less: it may count with a delay"),
    ],
)
def test_the_gap_to_the_providers_figure_is_shown(capsys, monkeypatch, says, words):
    asked = told(monkeypatch, says)
    call()
    call(NOON - dt.timedelta(days=1))
    call(provider="openai", kind="exact")
    out = act(capsys, compare=True).splitlines()[-1]

    assert out.startswith(f"openrouter says ${says:.4f} for today (UTC); metered here $0.5000;")
    assert words in out
    assert asked == ["openrouter"]
    found = json.loads(act(capsys, compare=True, json=True))["compared"]
    assert found[0]["gap_usd"] == pytest.approx(says - 0.5)


def test_a_provider_that_does_not_answer_leaves_the_gap_unknown(capsys, monkeypatch):
    told(monkeypatch, None, "openrouter answered 500")
    out = act(capsys, compare=True)

    assert "no figure of the provider's: openrouter answered 500" in out
    found = json.loads(act(capsys, compare=True, json=True))["compared"][0]
    assert (found["reported_usd"], found["gap_usd"]) == (None, None)


def test_without_a_key_nobody_is_asked(capsys, monkeypatch):
    asked = told(monkeypatch, 1.0)
    monkeypatch.delenv("OPENROUTER_API_KEY")

    assert "provider openrouter needs a key" in act(capsys, compare=True)
    assert asked == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"provider": "nobody"}, "no provider 'nobody'; there are anthropic"),
        ({"provider": "openai", "compare": True}, "openai tells no key what it has spent"),
    ],
)
def test_what_cannot_be_shown_is_refused(capsys, options, words):
    with pytest.raises(Refusal, match=words):
        act(capsys, **options)
