"""What is read from hax's items and its result; the records follow its documents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runs.agents.base import Result, Tally, Trace
from runs.agents.hax import HaxReader


def read(*records: dict[str, Any]) -> tuple[list[Trace], Result | None]:
    reader = HaxReader()
    lines = [line for record in records for line in reader.record(record)]
    return lines, reader.result()


def said(text: Any) -> dict[str, Any]:
    return {"kind": "assistant", "text": text}


def usage(**numbers: Any) -> dict[str, Any]:
    return {"kind": "turn_usage", "usage": numbers}


def end(outcome: Any = "complete", **fields: Any) -> dict[str, Any]:
    return {"type": "result", "outcome": outcome, "text": "Counted three.", "turns": 2} | fields


def test_a_good_run_is_traced_and_told():
    lines, ended = read(
        {"kind": "user", "text": "the task"},
        said("I look first."),
        {"kind": "tool_call", "id": "c1", "tool_name": "bash", "arguments": {"command": "wc -l *"}},
        {"kind": "tool_result", "id": "c1", "output": "3"},
        usage(input=600, output=20, cached=400),
        said("Counted three."),
        usage(input=700, output=46, cached=600),
        end(error=None, cost=0.25),
    )

    assert lines == [
        Trace("text", "I look first."),
        Trace("tool", "bash", '{"arguments": {"command": "wc -l *"}}'),
        Trace("text", "Counted three."),
    ]
    assert ended == Result(
        ok=True,
        text="Counted three.",
        tally=Tally(
            input_tokens=1300, cached_tokens=1000, output_tokens=66, turns=2, cost_usd=0.25
        ),
    )


def test_without_a_result_there_is_none():
    assert read(said("Done."), usage(input=1))[1] is None


@pytest.mark.parametrize("outcome", ["max_turns", "interrupted", "paused", "error"])
def test_any_outcome_but_complete_is_a_failure_called_by_its_name(outcome):
    _, ended = read(said("Half."), end(outcome, text=None, error=None))

    assert ended is not None
    assert (ended.ok, ended.text) == (False, "Half.")
    assert ended.error == f"the agent ended with: {outcome.replace('_', ' ')}"


@pytest.mark.parametrize("outcome", [None, "", 1, True, ["complete"], "Complete", "complete\0"])
def test_only_the_word_itself_is_success(outcome):
    _, ended = read(end(outcome, error=None))

    assert ended is not None
    assert not ended.ok
    assert ended.error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("the provider closed the connection", "the provider closed the connection"),
        ({"error": {"message": "no such key", "type": "x"}}, "no such key"),
        ('HTTP 401: {"error": {"message": "no such key"}}', "HTTP 401: no such key"),
        ("   ", "the agent ended with: error"),
    ],
)
def test_a2_an_error_is_told_as_a_sentence(error, words):
    _, ended = read(end("error", error=error))

    assert ended is not None
    assert ended.error == words


@pytest.mark.parametrize(
    ("error", "limited"),
    [
        ("HTTP 429: slow down", True),
        ("429 Too Many Requests", True),
        ("request failed with status 429", True),
        ("spent 429 cents", False),
        ("HTTP 4290", False),
    ],
)
def test_a_rate_limit_is_known_by_its_status(error, limited):
    _, ended = read(end("error", error=error))

    assert ended is not None
    assert ended.rate_limited is limited


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "turn_usage", "usage": None},
        {"kind": "turn_usage"},
        usage(input=None, output="many", cached=-1),
        usage(input=True, output=1.5, cached=[4]),
    ],
)
def test_l1_usage_it_does_not_tell_is_unknown_and_breaks_nothing(record):
    _, ended = read(record, end(turns=None, cost=None))

    assert ended is not None
    assert ended.ok
    assert ended.tally == Tally()


@pytest.mark.parametrize("cost", [None, 0, "0.1", -1, float("nan"), float("inf"), 10**400, True])
def test_a_cost_it_does_not_know_is_unknown_and_not_free(cost):
    _, ended = read(end(cost=cost))

    assert ended is not None
    assert ended.tally.cost_usd is None


def test_the_last_result_counts():
    _, ended = read(end("error", error="cut"), end())

    assert ended is not None
    assert ended.ok


@pytest.mark.parametrize("kind", [None, 7, [], {}, "\ud800", "session", "thinking"])
def test_records_of_other_kinds_say_nothing(kind):
    assert read({"kind": kind, "text": "x"}, {"type": kind}, {}) == ([], None)


def test_a6_a_tools_input_is_shown_whatever_its_key_is_called_but_not_for_ever():
    call = {"kind": "tool_call", "tool_name": "write", "input": {"text": "x" * 100_000}}

    [line], _ = read(call)

    assert line.detail.startswith('{"input": {"text": "xxx')
    assert len(line.detail) < 9_000


def test_a_call_without_name_or_input_is_shown():
    assert read({"kind": "tool_call"})[0] == [Trace("tool", "tool")]


def test_a_forged_huge_record_is_cut():
    _, ended = read(json.loads(json.dumps(end("error", text="x" * 500_000, error="y" * 50_000))))

    assert ended is not None
    assert len(ended.text) < 201_000
    assert len(ended.error) < 2_100
