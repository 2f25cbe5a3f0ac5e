"""What a run spent is kept whatever becomes of the process that executed it."""

from __future__ import annotations

import pytest

from runs import box, clock, narration, reconcile
from runs.models import RelayCall, Run
from tests.factories import make_run
from tests.runs.fake_engine import FakeEngine

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def lost(monkeypatch: pytest.MonkeyPatch, state, tmp_path) -> None:
    """Every live run has lost its process."""
    state.mkdir()
    (tmp_path / "runtime").mkdir()
    monkeypatch.setattr(reconcile, "get_engine", lambda _: FakeEngine())
    monkeypatch.setattr(reconcile, "owner_is", lambda _: "gone")
    monkeypatch.setattr(box, "runtime_directory", lambda: tmp_path / "runtime")


def call(run: Run, number: int, **fields) -> None:
    RelayCall.objects.create(
        run=run, sequence=number, method="POST", path="/v1/messages", started_at=clock.now(),
        protocol="anthropic-messages", **fields,
    )  # fmt: skip


def ended(run: Run) -> Run:
    assert reconcile.reconcile().ended == [run.uid]
    run.refresh_from_db()
    return run


def test_a_lost_run_keeps_what_its_calls_cost_as_a_lower_bound():
    run = make_run(state="running", started_at=clock.now(), provider="anthropic")
    call(run, 1, cost_usd=0.5, cost_kind="exact", input_tokens=100, output_tokens=20)
    call(run, 2, cost_usd=0.25, cost_kind="lower_bound", input_tokens=50, clamped=True)
    call(run, 3, refusal="budget", status=402)

    run = ended(run)
    assert (run.outcome, run.spent_usd, run.spent_tokens) == ("interrupted", 0.75, 170)
    assert (run.spent_is_lower_bound, run.calls_clamped) == (True, 1)
    assert "≥ $0.7500" in narration.last_word(run)


def test_a_lost_run_without_a_written_call_may_have_cost_something():
    run = ended(make_run(state="running", started_at=clock.now(), provider="anthropic"))

    assert "cost unknown" in narration.last_word(run)


@pytest.mark.parametrize(
    "fields", [{"mode": "open"}, {"started_at": None}, {"provider": "", "mode": "no-network"}]
)
def test_a_lost_run_that_the_relay_knows_nothing_of_has_no_cost(fields):
    run = ended(
        make_run(
            state="running",
            **{"started_at": clock.now(), "provider": "anthropic", "mode": "sealed", **fields},
        )
    )

    assert not run.spent_is_lower_bound
    assert "cost" not in narration.last_word(run)


def test_a_run_that_was_lost_while_it_ended_keeps_its_own_sum():
    run = make_run(
        state="ending", outcome="succeeded", started_at=clock.now(), provider="anthropic",
        spent_usd=2.0, spent_tokens=9,
    )  # fmt: skip
    call(run, 1, cost_usd=0.5, cost_kind="exact")

    run = ended(run)
    assert (run.outcome, run.spent_usd, run.spent_is_lower_bound) == ("succeeded", 2.0, False)
