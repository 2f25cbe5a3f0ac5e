"""What is read from gemini's `--output-format stream-json`, in the shape of real records."""

from __future__ import annotations

from typing import Any

import pytest

from runs.agents.base import Result, Tally, Trace
from runs.agents.evidence import ANSWER_CHARS, TEXT_CHARS
from runs.agents.gemini import GeminiReader

STATS = {"total_tokens": 1060, "input_tokens": 1000, "output_tokens": 50, "cached": 300}


def read(*records: dict[str, Any]) -> tuple[list[Trace], Result | None]:
    reader = GeminiReader()
    lines = [line for record in records for line in reader.record(record)]
    return lines, reader.result()


def said(text: Any, role: str = "assistant") -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text, "delta": True}


def call(identity: str = "c1", **parameters: Any) -> dict[str, Any]:
    named = {"tool_name": "run_shell_command", "tool_id": identity}
    return {"type": "tool_use", **named, "parameters": parameters}


def given(status: str = "success", identity: str = "c1", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_id": identity, "status": status, **fields}


def end(status: Any = "success", stats: Any = None, **fields: Any) -> dict[str, Any]:
    return {"type": "result", "status": status, "stats": stats or STATS, **fields}


def refused(message: Any) -> dict[str, Any]:
    return end("error", error={"type": "unknown", "message": message})


def test_a_good_run_is_traced_and_told():
    lines, ended = read(
        {"type": "init", "session_id": "s", "model": "some-model"},
        said("the task", role="user"),
        said("I co"),
        said("unt."),
        call(command="ls"),
        given(output="a"),
        said("There is "),
        said("one."),
        end(),
    )

    assert lines == [
        Trace("note", "model some-model"),
        Trace("text", "I count."),
        Trace("tool", "run_shell_command", '{"command": "ls"}'),
        Trace("note", "run_shell_command gave back", "a"),
        Trace("text", "There is one."),
    ]
    assert ended == Result(
        ok=True,
        text="There is one.",
        # What was thought is in the sum only.
        tally=Tally(input_tokens=1000, cached_tokens=300, output_tokens=60),
    )


def test_without_a_result_there_is_none():
    assert read(said("Done."))[1] is None


def test_a_failed_tool_is_a_problem_with_its_reason():
    lines, _ = read(call(), given("error", error={"type": "shell", "message": "no such file"}))

    assert lines[1:] == [Trace("problem", "run_shell_command failed", "no such file")]


def test_a_transient_error_fails_nothing():
    lines, ended = read(
        {"type": "error", "severity": "warning", "message": "Loop detected"}, said("Done."), end()
    )

    assert lines[0] == Trace("problem", "Loop detected")
    assert ended is not None
    assert ended.ok


@pytest.mark.parametrize(
    ("message", "error", "limited"),
    [
        ('[API Error: {"error":{"code":401,"message":"no"}}]', "no (status 401)", False),
        ('[API Error: {"error":{"code":429,"message":"slow"}}]', "slow (status 429)", True),
        ('{"error":{"code":429,"message":"slow"}}', "slow (status 429)", True),
        (
            '[API Error: {"error":{"code":429,"message":"slow"}}]\nWait for a while.',
            "slow (status 429)",
            True,
        ),
        ("[API Error: not found]", "not found", False),
        ("[API Error: slow]\nWait for a while.", "slow (status 429)", True),
        ("[API Error: a [list]\nof two]", "a [list]\nof two", False),
        ("[API Error: 429 wishes]", "429 wishes", False),
        ('[API Error: {"error":{"code":"429"}}]', '{"error": {"code": "429"}}', False),
        ("[API Error: {broken]", "{broken", False),
        ("two]\nlines", "two]\nlines", False),
        ("no [brackets]", "no [brackets]", False),
        ("", "unknown", False),
        (None, "unknown", False),
    ],
)
def test_a_failed_call_is_told_in_words(message, error, limited):
    assert read(refused(message))[1] == Result(
        ok=False,
        error=error,
        tally=Tally(input_tokens=1000, cached_tokens=300, output_tokens=60),
        rate_limited=limited,
    )


@pytest.mark.parametrize("status", [None, "", "done", True])
def test_only_success_is_success(status):
    _, ended = read(end(status))

    assert ended is not None
    assert not ended.ok
    assert ended.error == "the result record says neither success nor why not"


def test_numbers_that_are_none_count_as_not_told():
    stats = {"input_tokens": "many", "output_tokens": 5, "total_tokens": 1, "cached": -1}

    assert read(end(stats=stats))[1].tally == Tally(output_tokens=5)


def test_a_flood_of_pieces_is_capped_and_stays_one_line():
    lines, ended = read(*[said("x" * 1000)] * 1000, end())

    assert ended is not None
    assert len(ended.text) == ANSWER_CHARS
    [line] = lines
    assert len(line.text) < TEXT_CHARS + 100


def test_tools_whose_result_never_comes_are_forgotten():
    reader = GeminiReader()
    for number in range(5_000):
        list(reader.record(call(f"c{number}")))

    assert all(len(value) <= 1_000 for value in vars(reader).values() if isinstance(value, dict))
