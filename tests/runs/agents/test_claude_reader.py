"""What is read from Claude Code's stream."""

from __future__ import annotations

from typing import Any

import pytest

from runs.agents.base import Result, Tally, Trace
from runs.agents.claude import ClaudeReader


def read(*records: dict[str, Any]) -> tuple[list[Trace], Result | None]:
    reader = ClaudeReader()
    lines = [line for record in records for line in reader.record(record)]
    return lines, reader.result()


def said(text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"role": "assistant", "content": content}, **more}


def calls(name: str, identity: str = "call-1", **arguments: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "id": identity, "name": name, "input": arguments}
    return {"type": "assistant", "message": {"role": "assistant", "content": [block]}}


def returns(content: Any, identity: str = "call-1", is_error: bool = False) -> dict[str, Any]:
    block = {
        "type": "tool_result",
        "tool_use_id": identity,
        "content": content,
        "is_error": is_error,
    }
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def result(**fields: Any) -> dict[str, Any]:
    record = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": "All counted.",
        "num_turns": 2,
        "total_cost_usd": 0.25,
        "usage": {
            "input_tokens": 100,
            "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 3,
            "output_tokens": 7,
        },
        "permission_denials": [],
        "api_error_status": None,
        **fields,
    }
    return {key: value for key, value in record.items() if value is not ...}


def test_a_good_run_is_traced_and_told():
    lines, ended = read(
        {"type": "system", "subtype": "ui_invalidate"},
        {"type": "system", "subtype": "init", "model": "opus", "tools": ["Bash"]},
        said("I will count."),
        calls("Bash", command="wc -l *"),
        returns("3 a.py"),
        said("Counted three."),
        result(),
    )

    assert lines == [
        Trace("note", "model opus"),
        Trace("text", "I will count."),
        Trace("tool", "Bash", '{"command": "wc -l *"}'),
        Trace("note", "Bash gave back", "3 a.py"),
        Trace("text", "Counted three."),
    ]
    assert ended == Result(
        ok=True,
        text="All counted.",
        tally=Tally(input_tokens=123, cached_tokens=3, output_tokens=7, turns=2, cost_usd=0.25),
    )


def test_no_result_record_is_no_result():
    assert read(said("I will count."))[1] is None


def test_a_failed_call_is_a_failure_although_it_says_success():
    _, ended = read(result(is_error=True, result="API Error: 500 broken", api_error_status=500))

    assert ended is not None
    assert (ended.ok, ended.error, ended.rate_limited) == (False, "API Error: 500 broken", False)
    assert ended.text == ""


def test_the_turn_limit_is_told_in_words_from_the_errors():
    _, ended = read(
        said("Still at it."),
        result(
            subtype="error_max_turns",
            is_error=True,
            result=...,
            errors=["Reached maximum number of turns (1)"],
        ),
    )

    assert ended is not None
    assert ended.error == "Reached maximum number of turns (1)"
    assert ended.text == "Still at it."


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"is_error": True, "result": "", "errors": [{"message": "no"}, "never"]}, "no; never"),
        ({"is_error": True, "result": ..., "terminal_reason": "api_error"}, "api_error"),
        ({"subtype": "error_during_execution", "result": ...}, "error during execution"),
        ({"is_error": None, "result": ..., "subtype": None}, "neither success nor error"),
        ({"is_error": 0, "result": "fine"}, "fine"),
        ({"is_error": True, "result": {"error": {"message": "an object"}}}, "an object"),
    ],
)
def test_only_an_explicit_success_is_one_and_its_error_is_a_sentence(fields, error):
    _, ended = read(result(**fields))

    assert ended is not None
    assert not ended.ok
    assert error in ended.error
    assert "{" not in ended.error


def test_the_last_result_record_counts():
    _, ended = read(result(), result(is_error=True, result="then it broke"))

    assert ended is not None
    assert ended.error == "then it broke"


def test_retries_are_shown_and_fail_nothing():
    retry = {
        "type": "system",
        "subtype": "api_retry",
        "attempt": 2,
        "max_retries": 10,
        "error_status": 529,
        "error": "overloaded",
    }

    lines, ended = read(retry, retry | {"error_status": None, "attempt": None}, result())

    assert lines == [
        Trace("problem", "retrying, 2 of 10: overloaded (status 529)"),
        Trace("problem", "retrying, ? of 10: overloaded"),
    ]
    assert ended is not None
    assert ended.ok


def test_the_providers_limit_is_told_with_its_end():
    limit = {
        "type": "rate_limit_event",
        "rate_limit_info": {"status": "rejected", "resetsAt": 1_800_000_000},
    }

    _, ended = read(limit, result(is_error=True, result="Slow down", api_error_status=429))

    assert ended is not None
    assert ended.rate_limited
    assert ended.resets_at == 1_800_000_000


def test_a_limit_that_was_overcome_limits_nothing():
    allowed = {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed_warning"}}

    lines, ended = read(allowed, result(api_error_status=429))

    assert lines == []
    assert ended is not None
    assert (ended.ok, ended.rate_limited, ended.resets_at) == (True, False, None)


def test_a_failed_tool_is_a_problem_named_after_its_call():
    lines, _ = read(
        calls("Bash", command="false"),
        returns(
            [{"type": "text", "text": "exit"}, {"type": "text", "text": "code 1"}], is_error=True
        ),
    )

    assert lines[1] == Trace("problem", "Bash failed", "exit\ncode 1")


def test_an_error_of_the_api_is_a_problem_and_not_the_agents_words():
    lines, ended = read(
        said("Working."), said("API Error: gone", is_api_error_message=True), result(result=...)
    )

    assert lines[1] == Trace("problem", "API Error: gone")
    assert ended is not None
    assert ended.text == "Working."


def test_the_words_of_an_agent_it_started_are_not_the_answer():
    _, ended = read(said("Mine."), said("Theirs.", parent_tool_use_id="call-9"), result(result=...))

    assert ended is not None
    assert ended.text == "Mine."


DENIAL = {"tool_name": "Bash", "tool_use_id": "call-1", "tool_input": {}}


def test_a_refused_last_act_waits_for_a_person():
    lines, ended = read(
        calls("Bash", command="rm -r build"),
        {
            "type": "system",
            "subtype": "permission_denied",
            "tool_name": "Bash",
            "tool_use_id": "call-1",
            "message": "This needs approval",
        },
        returns("This needs approval", is_error=True),
        said("May I?"),
        result(permission_denials=[DENIAL]),
    )

    assert Trace("problem", "no permission for Bash", "This needs approval") in lines
    assert ended is not None
    assert ended.needs_input
    assert ended.ok


def test_a_refusal_that_was_worked_around_waits_for_nobody():
    _, ended = read(
        calls("Bash", command="rm -r build"),
        calls("Write", identity="call-2", path="REPORT.md"),
        result(permission_denials=[DENIAL]),
    )

    assert ended is not None
    assert not ended.needs_input


def test_a_question_to_the_person_as_last_act_waits_for_them():
    _, ended = read(calls("AskUserQuestion", questions=[]), said("Which one?"), result())

    assert ended is not None
    assert ended.needs_input


def test_a_question_in_words_alone_is_no_signal():
    _, ended = read(said("Shall I go on? Please approve."), result())

    assert ended is not None
    assert not ended.needs_input


def test_what_it_does_not_say_is_unknown_and_not_zero():
    _, ended = read(result(usage=None, num_turns="2", total_cost_usd=float("nan")))

    assert ended is not None
    assert ended.tally == Tally()
