"""What is read from minima's records, which follow its documents."""

from __future__ import annotations

from typing import Any

import pytest

from runs.agents.base import Result, Tally, Trace
from runs.agents.minima import MinimaReader


def read(*records: dict[str, Any]) -> tuple[list[Trace], Result | None]:
    reader = MinimaReader()
    lines = [line for record in records for line in reader.record(record)]
    return lines, reader.result()


def end(outcome: Any = "complete", **fields: Any) -> dict[str, Any]:
    told = {"text": "Counted three.", "turns": 2, "input_tokens": 1300, "output_tokens": 66}
    return {"type": "result", "outcome": outcome, **told, **fields}


def test_a_good_run_is_traced_and_told():
    lines, ended = read(
        {"type": "turn", "text": "I look first."},
        {"type": "tool_call", "id": "c1", "name": "shell", "input": {"command": "wc -l *"}},
        {"type": "tool_result", "id": "c1", "name": "shell", "ok": True, "output": "3"},
        {"type": "turn", "text": "Counted three."},
        end(error=None),
    )

    assert lines == [
        Trace("text", "I look first."),
        Trace("tool", "shell", '{"input": {"command": "wc -l *"}}'),
        Trace("note", "shell gave back", '{"output": "3"}'),
        Trace("text", "Counted three."),
    ]
    assert ended == Result(
        ok=True,
        text="Counted three.",
        tally=Tally(input_tokens=1300, output_tokens=66, turns=2),
    )


def test_without_a_result_there_is_none():
    assert read({"type": "turn", "text": "Done."})[1] is None


@pytest.mark.parametrize("fields", [{"ok": False}, {"ok": None}, {"ok": 0}, {}])
def test_a_failed_tool_is_a_problem_with_its_output(fields):
    lines, _ = read({"type": "tool_result", "name": "shell", "output": "oops", **fields})

    assert lines == [Trace("problem", "shell failed", '{"output": "oops"}')]


@pytest.mark.parametrize(
    ("attempt", "words"),
    [(2, "retrying, attempt 2"), (0, "retrying, attempt 0"), ("2", "retrying, attempt ?")],
)
def test_a_retry_is_shown_and_fails_nothing(attempt, words):
    lines, ended = read({"type": "retry", "attempt": attempt}, end())

    assert lines == [Trace("problem", words)]
    assert ended is not None
    assert ended.ok


@pytest.mark.parametrize(
    ("outcome", "error", "words"),
    [
        ("max_turns", None, "the agent ended with: max turns"),
        ("error", "no such key", "no such key"),
        ("error", {"message": "no such key"}, "no such key"),
        (None, None, "the agent ended with: no outcome"),
        (True, None, "the agent ended with: no outcome"),
        (["complete"], "", "the agent ended with: no outcome"),
    ],
)
def test_any_outcome_but_complete_is_a_failure_told_as_a_sentence(outcome, error, words):
    _, ended = read({"type": "turn", "text": "Half."}, end(outcome, text="", error=error))

    assert ended is not None
    assert (ended.ok, ended.error, ended.text) == (False, words, "Half.")


def test_a_rate_limit_is_known_by_its_status():
    _, ended = read(end("error", error="status 429 from the provider"))

    assert ended is not None
    assert ended.rate_limited


@pytest.mark.parametrize("value", [None, "12", -1, 1.5, True, [1], 10**16])
def test_l1_numbers_it_does_not_tell_are_unknown_and_break_nothing(value):
    _, ended = read(end(turns=value, input_tokens=value, output_tokens=value))

    assert ended is not None
    assert ended.ok
    assert ended.tally == Tally()


@pytest.mark.parametrize("kind", [None, 7, [], {}, "\ud800", "session", "error"])
def test_records_of_other_kinds_say_nothing(kind):
    assert read({"type": kind, "text": "x"}, {}) == ([], None)


@pytest.mark.parametrize("text", [None, 7, "", {"a": 1}])
def test_a_turn_without_text_says_nothing(text):
    assert read({"type": "turn", "text": text}) == ([], None)


def test_a6_a_tools_input_is_shown_but_not_for_ever():
    [line], _ = read({"type": "tool_call", "name": "write", "input": "x" * 100_000})

    assert line.text == "write"
    assert 7_000 < len(line.detail) < 9_000
