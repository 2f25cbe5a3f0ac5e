"""What is read from Codex's events."""

from __future__ import annotations

from typing import Any

import pytest

from runs.agents.base import Result, Tally, Trace
from runs.agents.codex import CodexReader


def read(*records: dict[str, Any]) -> tuple[list[Trace], Result | None]:
    reader = CodexReader()
    lines = [line for record in records for line in reader.record(record)]
    return lines, reader.result()


def item(event: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"item.{event}", "item": {"id": "item_0", "type": kind, **fields}}


def message(text: Any) -> dict[str, Any]:
    return item("completed", "agent_message", text=text)


COMPLETED = {
    "type": "turn.completed",
    "usage": {
        "input_tokens": 2200,
        "cached_input_tokens": 600,
        "cache_write_input_tokens": 0,
        "output_tokens": 110,
        "reasoning_output_tokens": 10,
    },
}


def test_what_a_command_gave_back_is_told():
    lines, _ = read(
        item("completed", "command_execution", command="ls", exit_code=0, status="completed",
             aggregated_output="a.py\nb.py\n"),
    )  # fmt: skip

    assert lines == [Trace("note", "command gave back", "a.py\nb.py")]


def test_a_good_run_is_traced_and_told():
    command = "/bin/bash -lc 'wc -l *'"
    lines, ended = read(
        {"type": "thread.started", "thread_id": "t"},
        {"type": "turn.started"},
        item("started", "command_execution", command=command, exit_code=None),
        item("completed", "command_execution", command=command, exit_code=0, status="completed"),
        item("completed", "reasoning", text="hidden"),
        message("First thought."),
        message("Counted three."),
        COMPLETED,
    )

    assert lines == [
        Trace("tool", "command", command),
        Trace("text", "First thought."),
        Trace("text", "Counted three."),
    ]
    assert ended == Result(
        ok=True,
        text="Counted three.",
        tally=Tally(input_tokens=2200, cached_tokens=600, output_tokens=110),
    )


def test_no_end_of_the_turn_is_no_result():
    assert read({"type": "turn.started"}, message("Counted."))[1] is None


def test_reconnecting_is_shown_and_fails_nothing():
    reconnect = {"type": "error", "message": "Reconnecting... 1/5 (cut)"}

    lines, ended = read(reconnect, message("Done."), COMPLETED)

    assert lines[0] == Trace("problem", "Reconnecting... 1/5 (cut)")
    assert ended is not None
    assert ended.ok


def test_an_error_line_alone_ends_nothing():
    error = {"type": "error", "message": "cut"}

    assert read(error)[1] is None
    after = read(COMPLETED, error)[1]
    assert after is not None
    assert after.ok


def test_an_unknown_model_is_a_note_and_no_failure():
    lines, ended = read(item("completed", "error", message="No data of model x"), COMPLETED)

    assert lines == [Trace("note", "No data of model x")]
    assert ended is not None
    assert ended.ok


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"message": "unexpected status 500: gone"}, "unexpected status 500: gone"),
        ({"error": {"message": "inner"}}, "inner"),
        ("plain words", "plain words"),
        (None, "the turn failed without a reason"),
        ({"code": 7}, '{"code": 7}'),
    ],
)
def test_a_failed_turn_is_a_failure_told_as_a_sentence(error, words):
    _, ended = read(message("Half."), {"type": "turn.failed", "error": error})

    assert ended == Result(ok=False, text="Half.", error=words)


@pytest.mark.parametrize(
    ("text", "limited"),
    [
        ("exceeded retry limit, last status: 429 Too Many Requests", True),
        ("unexpected status 429 Too Many Requests: slow down", True),
        ("unexpected status 402 Payment Required: 429 cents are left", False),
        ("unexpected status 4290", False),
    ],
)
def test_a_rate_limit_is_known_by_its_status(text, limited):
    _, ended = read({"type": "turn.failed", "error": {"message": text}})

    assert ended is not None
    assert ended.rate_limited is limited


def test_a_new_turn_takes_back_the_end_of_the_last():
    assert read(COMPLETED, {"type": "turn.started"})[1] is None


def test_a_failed_command_is_a_problem_with_its_output():
    lines, _ = read(
        item(
            "completed",
            "command_execution",
            command="false",
            aggregated_output="nothing here\n",
            exit_code=3,
            status="failed",
        )
    )

    assert lines == [Trace("problem", "command ended with exit code 3", "nothing here\n")]


def test_other_tools_are_traced_with_their_input():
    lines, _ = read(
        item("started", "file_change", changes=[]),
        item("completed", "file_change", changes=[{"path": "a", "kind": "add"}]),
        item("completed", "web_search", query="how to count"),
    )

    assert lines == [
        Trace("tool", "file change", '{"changes": [{"path": "a", "kind": "add"}]}'),
        Trace("tool", "web search", '{"query": "how to count"}'),
    ]
