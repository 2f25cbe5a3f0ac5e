"""What is read from what the wrapper of hermes' image prints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runs.agents.base import Result, Tally, Trace
from runs.agents.hermes import HermesReader

USAGE = {
    "estimated_cost_usd": 0.0,
    "cost_status": "unknown",
    "input_tokens": 1200,
    "output_tokens": 132,
    "cache_read_tokens": 800,
    "cache_write_tokens": 50,
    "reasoning_tokens": 12,
    "api_calls": 2,
    "completed": True,
    "failed": False,
}
FAILED = dict.fromkeys(USAGE) | {"completed": False, "failed": True}


def read(*records: dict[str, Any]) -> tuple[list[Trace], Result | None]:
    reader = HermesReader()
    lines = [line for record in records for line in reader.record(record)]
    return lines, reader.result()


def called(command: str) -> dict[str, Any]:
    call = {"name": "terminal", "input": json.dumps({"command": command})}
    return {"type": "assistant", "content": "I count.", "calls": [call]}


def given(**fields: Any) -> dict[str, Any]:
    return {"type": "tool", "tool": "terminal", **fields}


def end(text: Any = "There is one.", usage: Any = USAGE, code: Any = 0) -> dict[str, Any]:
    return {"type": "result", "exit_code": code, "text": text, "usage": usage}


def test_a_good_run_is_traced_and_told():
    lines, ended = read(
        called("ls"),
        given(output="a", exit_code=0),
        {"type": "assistant", "content": "There is one."},
        end(),
    )

    assert lines == [
        Trace("text", "I count."),
        Trace("tool", "terminal", '{"command": "ls"}'),
        Trace("note", "terminal gave back", "a"),
        Trace("text", "There is one."),
    ]
    assert ended == Result(
        ok=True,
        text="There is one.",
        tally=Tally(input_tokens=2050, cached_tokens=800, output_tokens=132, turns=2),
    )


def test_without_a_result_there_is_none():
    assert read(called("ls"))[1] is None


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (
            {"output": "gone", "exit_code": 2},
            Trace("problem", "terminal ended with exit code 2", "gone"),
        ),
        ({"error": "no such tool"}, Trace("problem", "terminal failed", "no such tool")),
        ({"error": {"message": "no"}}, Trace("problem", "terminal failed", "no")),
    ],
)
def test_a_tool_that_failed_is_a_problem(fields, line):
    assert read(given(**fields))[0] == [line]


@pytest.mark.parametrize("fields", [{}, {"exit_code": 0, "error": ""}, {"exit_code": "two"}])
def test_a_tool_that_did_not_fail_is_no_problem(fields):
    assert read(given(**fields))[0] == []


@pytest.mark.parametrize(
    ("text", "limited"),
    [
        ("HTTP 429: slow down", True),
        ("API call failed after 3 retries: HTTP 429: slow down", True),
        ("HTTP 402: nothing left of HTTP 429", False),
        ("HTTP 4290: odd", False),
    ],
)
def test_a_failure_is_told_in_its_words(text, limited):
    _, ended = read(end(text, FAILED))

    assert ended == Result(ok=False, error=text, rate_limited=limited)


@pytest.mark.parametrize(
    ("record", "error"),
    [
        (end("", FAILED | {"failure": "it broke"}, 1), "it broke"),
        (end("", FAILED, 2), "hermes exited with 2 and no words"),
        (end("", None, 1), "hermes exited with 1 and no words"),
        (end("Done.", None), "Done."),
        (end("Half.", USAGE | {"completed": False}), "Half."),
        (end("Half.", USAGE | {"failed": None}), "Half."),
        ({"type": "result"}, "hermes exited with ? and no words"),
    ],
)
def test_only_what_its_usage_file_calls_complete_is_a_success(record, error):
    _, ended = read(record)

    assert ended is not None
    assert (ended.ok, ended.error) == (False, error)


def test_a_price_it_knows_is_told():
    priced = USAGE | {"cost_status": "estimated", "estimated_cost_usd": 0.25}

    assert read(end(usage=priced))[1].tally.cost_usd == 0.25


def test_numbers_that_are_none_count_as_not_told():
    usage = {"completed": True, "failed": False, "input_tokens": "x", "api_calls": -1}

    assert read(end(usage=usage))[1].tally == Tally()
