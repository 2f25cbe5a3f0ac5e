"""How a run ended, decided from what was seen: every row of the contract's table."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.agents.base import Result
from runs.models.run import Outcome
from runs.outcome import HALTED, Seen, decide

GOOD = Result(ok=True, text="done")
BAD = Result(ok=False, error="it broke")


def seen(**facts) -> Seen:
    given_facts = {"exit_code": 0, "result": GOOD, "checks_calls": True, "calls_completed": 1}
    return Seen(**{**given_facts, **facts})


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        ({}, "succeeded"),
        ({"checks_calls": False, "calls_completed": 0}, "succeeded"),  # open, or no model at all
        ({"result": BAD}, "failed"),
        ({"result": None}, "failed"),
        ({"result": None, "exit_code": 1}, "failed"),
        ({"exit_code": 1}, "failed"),
        ({"calls_completed": 0}, "failed"),
        ({"result": Result(ok=True, needs_input=True)}, "needs_input"),
        ({"result": Result(ok=False, needs_input=True)}, "needs_input"),
        ({"result": Result(ok=False, rate_limited=True)}, "rate_limited"),
        ({"result": Result(ok=True, rate_limited=True)}, "succeeded"),  # it got over it
        ({"exit_code": None, "result": None, "not_started": "no such command"}, "refused"),
        ({"halt": "timed_out"}, "timed_out"),
        ({"halt": "stalled"}, "stalled"),
        ({"halt": "cancelled"}, "cancelled"),
        ({"halt": "interrupted"}, "interrupted"),
        ({"halt": "link_lost"}, "interrupted"),
        ({"halt": "lease_lost"}, "interrupted"),
        ({"exit_code": 137, "oom_killed": True, "result": None}, "out_of_memory"),
        ({"exit_code": 137, "oom_killed": True}, "out_of_memory"),
        ({"exit_code": 137, "result": None}, "failed"),
        ({"exit_code": 0, "oom_killed": True}, "succeeded"),  # only a child died
        ({"exit_code": 1, "oom_killed": True, "result": None}, "failed"),
        ({"exit_code": None, "result": None}, "interrupted"),
        ({"exit_code": None}, "interrupted"),
    ],
)
def test_each_way_to_end_has_its_outcome(facts, outcome):
    found, reason = decide(seen(**facts))

    assert found == outcome
    if outcome not in ("succeeded", "timed_out", "stalled", "cancelled", "interrupted"):
        assert reason


@pytest.mark.parametrize(
    ("code", "result"),
    list(itertools.product([1, 2, 124, 125, 129, 130, 143, 255], [None, BAD, GOOD])),
)
def test_no_exit_status_of_the_agents_own_is_taken_for_our_doing(code, result):
    """An agent that exits with 129, 130 or 143 by itself has failed, whatever it claims."""
    found, reason = decide(seen(exit_code=code, result=result))

    assert found == Outcome.FAILED
    assert reason


def test_a_forged_success_without_a_relayed_call_has_failed():
    """L-1, A-7: any process in the container can write a success record."""
    found, reason = decide(seen(calls_completed=0))

    assert found == Outcome.FAILED
    assert "no completed model call" in reason


@pytest.mark.parametrize("halt", list(HALTED))
def test_what_we_ended_is_ours_whatever_the_container_says(halt):
    for code, oom, result in itertools.product([None, 0, 137], [True, False], [None, GOOD, BAD]):
        found, reason = decide(
            seen(halt=halt, halt_reason="because", exit_code=code, oom_killed=oom, result=result)
        )
        assert (found, reason) == (HALTED[halt], "because")


def test_out_of_memory_names_the_limit():
    """amazon-ecs-agent#2467."""
    _, reason = decide(seen(exit_code=137, oom_killed=True, memory="512m"))

    assert "512m" in reason


def test_the_agents_own_words_are_the_reason():
    assert decide(seen(result=BAD))[1] == "it broke"
    assert decide(seen(result=Result(ok=False)))[1] == "the agent reported a failure"


@given(
    halt=st.none() | st.sampled_from(list(HALTED)),
    exit_code=st.none() | st.integers(0, 255),
    oom_killed=st.booleans(),
    result=st.none()
    | st.builds(Result, ok=st.booleans(), needs_input=st.booleans(), rate_limited=st.booleans()),
    checks_calls=st.booleans(),
    calls_completed=st.integers(0, 2),
)
def test_success_needs_everything_to_agree(**facts):
    found, _ = decide(Seen(**facts))

    if found == Outcome.SUCCEEDED:
        assert facts["halt"] is None
        assert facts["exit_code"] == 0
        assert facts["result"].ok
        assert facts["calls_completed"] or not facts["checks_calls"]
    if found in (Outcome.CANCELLED, Outcome.TIMED_OUT, Outcome.STALLED):
        assert facts["halt"] is not None
    if found == Outcome.INTERRUPTED:
        assert facts["halt"] is not None or facts["exit_code"] is None


@pytest.mark.parametrize("claimed", [True, False])
def test_a_refused_call_for_want_of_budget_outranks_what_the_agent_claims(claimed: bool):
    outcome, reason = decide(
        seen(result=Result(ok=claimed, error="" if claimed else "402"), exhausted="$1 is spent")
    )

    assert outcome == Outcome.BUDGET_EXHAUSTED
    assert reason.startswith("$1 is spent")
    assert ("all the same" in reason) is claimed
