"""prime's records are pi's, by its documents; those it lacks must not be missed."""

from __future__ import annotations

from typing import Any

import pytest

from runs.agents import get_agent
from runs.agents.base import Result, Tally, Trace
from runs.agents.pi import PiReader


def read(*records: dict[str, Any]) -> tuple[list[Trace], Result | None]:
    reader = get_agent("prime").reader()
    lines = [line for record in records for line in reader.record(record)]
    return lines, reader.result()


def answer(*texts: str, **fields: Any) -> dict[str, Any]:
    message = {
        "role": "assistant",
        "content": [{"type": "text", "text": text} for text in texts],
        "stopReason": "stop",
        "usage": {"input": 600, "output": 66, "cacheRead": 400, "cacheWrite": 5},
    }
    return {"type": "message_end", "message": message | fields}


def test_it_has_pis_reader_and_a_fresh_one_for_every_run():
    first, second = get_agent("prime").reader(), get_agent("prime").reader()

    assert type(first) is PiReader
    assert first is not second


@pytest.mark.parametrize(
    "end",
    [
        {"type": "agent_end"},
        {"type": "agent_end", "willRetry": None},
        {"type": "agent_end", "messages": [], "willRetry": False},
        {"type": "agent_settled"},
    ],
)
def test_a_good_run_is_traced_and_told_by_either_end(end):
    lines, ended = read(
        {"type": "agent_start"},
        {"type": "tool_execution_start", "toolName": "bash", "args": {"command": "wc -l *"}},
        answer("Counted", "three."),
        end,
    )

    assert lines == [
        Trace("tool", "bash", '{"command": "wc -l *"}'),
        Trace("text", "Counted\nthree."),
    ]
    assert ended == Result(
        ok=True,
        text="Counted\nthree.",
        tally=Tally(input_tokens=1005, cached_tokens=400, output_tokens=66, turns=1),
    )


def test_an_end_that_announces_a_retry_is_none():
    assert read(answer("Half."), {"type": "agent_end", "willRetry": True})[1] is None


def test_a_failure_that_a_retry_overcame_is_none():
    failed = answer(stopReason="error", errorMessage="500: broken")
    retry = {"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "errorMessage": "broken"}

    lines, ended = read(failed, retry, answer("Done."), {"type": "agent_end"})

    assert Trace("problem", "retrying, 1 of 3: broken") in lines
    assert ended is not None
    assert (ended.ok, ended.text) == (True, "Done.")


def test_a_failed_call_is_a_failure_told_as_a_sentence():
    _, ended = read(
        answer(stopReason="error", errorMessage='429: {"message":"slow down"}'),
        {"type": "agent_end"},
    )

    assert ended is not None
    assert (ended.ok, ended.error, ended.rate_limited) == (False, "429: slow down", True)
