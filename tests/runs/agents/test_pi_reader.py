"""What is read from pi's events."""

from __future__ import annotations

from typing import Any

import pytest

from runs.agents.base import Result, Tally, Trace
from runs.agents.pi import PiReader

USAGE = {"input": 600, "output": 66, "cacheRead": 400, "cacheWrite": 5, "cost": {"total": 0}}
NOTHING = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0}}
SETTLED = {"type": "agent_settled", "aborted": False}


def read(*records: dict[str, Any]) -> tuple[list[Trace], Result | None]:
    reader = PiReader()
    lines = [line for record in records for line in reader.record(record)]
    return lines, reader.result()


def answer(*texts: str, usage: Any = USAGE, **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in texts]
    message = {"role": "assistant", "content": content, "stopReason": "stop", "usage": usage}
    return {"type": "message_end", "message": message | fields}


def failure(text: Any) -> dict[str, Any]:
    return answer(usage=NOTHING, stopReason="error", errorMessage=text)


def agent_end(retry: bool) -> dict[str, Any]:
    return {"type": "agent_end", "messages": [], "willRetry": retry}


def test_a_good_run_is_traced_and_told():
    lines, ended = read(
        {"type": "session", "version": 3},
        {"type": "agent_start"},
        {"type": "message_end", "message": {"role": "user", "content": "the task"}},
        answer(stopReason="toolUse"),
        {"type": "tool_execution_start", "toolName": "bash", "args": {"command": "wc -l *"}},
        {"type": "tool_execution_end", "toolName": "bash", "isError": False, "result": {}},
        answer("Counted", "three."),
        {"type": "turn_end", "message": answer("Counted")["message"]},
        agent_end(retry=False),
        SETTLED,
    )

    assert lines == [
        Trace("tool", "bash", '{"command": "wc -l *"}'),
        Trace("text", "Counted\nthree."),
    ]
    assert ended == Result(
        ok=True,
        text="Counted\nthree.",
        tally=Tally(input_tokens=2010, cached_tokens=800, output_tokens=132, turns=2),
    )


@pytest.mark.parametrize("end", [agent_end(retry=False), SETTLED], ids=["agent_end", "settled"])
def test_either_end_of_the_agent_is_terminal(end):
    _, ended = read(answer("Done."), end)

    assert ended is not None
    assert ended.ok


@pytest.mark.parametrize(
    "records",
    [
        (answer("Done."),),
        (failure("429: slow"), agent_end(retry=True)),
        (answer("Done."), agent_end(retry=False), {"type": "agent_start"}),
    ],
    ids=["no end", "a retry follows", "it began again"],
)
def test_without_an_end_there_is_no_result(records):
    assert read(*records)[1] is None


def test_a_failed_call_is_a_failure_told_as_a_sentence():
    text = '401: {"message":"no such key","type":"authentication_error","code":null}'

    lines, ended = read(failure(text), agent_end(retry=False), SETTLED)

    assert lines == [Trace("problem", "401: no such key")]
    assert ended is not None
    assert (ended.ok, ended.error, ended.rate_limited) == (False, "401: no such key", False)


def test_a_failure_that_a_retry_overcame_is_none():
    _, ended = read(
        failure("500: broken"),
        agent_end(retry=True),
        {
            "type": "auto_retry_start",
            "attempt": 1,
            "maxAttempts": 3,
            "errorMessage": "500: broken",
        },
        {"type": "agent_start"},
        answer("Done."),
        {"type": "auto_retry_end", "success": True, "attempt": 1},
        agent_end(retry=False),
        SETTLED,
    )

    assert ended is not None
    assert ended.ok
    assert ended.error == ""


def test_a_retry_is_shown_with_its_reason():
    lines, _ = read(
        {"type": "auto_retry_start", "attempt": 2, "maxAttempts": 3, "errorMessage": "cut"}
    )

    assert lines == [Trace("problem", "retrying, 2 of 3: cut")]


def test_retries_that_all_failed_are_a_failure():
    _, ended = read(
        answer("Half."),
        {"type": "auto_retry_end", "success": False, "finalError": {"message": "cut again"}},
        SETTLED,
    )

    assert ended is not None
    assert (ended.ok, ended.error, ended.text) == (False, "cut again", "Half.")


@pytest.mark.parametrize(
    ("records", "error"),
    [
        ((SETTLED,), "the agent ended without an answer"),
        ((answer("Half."), SETTLED | {"aborted": True}), "the agent says it was aborted"),
        ((answer(stopReason="aborted"), SETTLED), "the model call ended: aborted"),
        ((failure(None), SETTLED), "the model call ended: error"),
    ],
)
def test_an_end_without_a_good_answer_is_a_failure(records, error):
    _, ended = read(*records)

    assert ended is not None
    assert not ended.ok
    assert ended.error == error


@pytest.mark.parametrize(
    ("text", "limited"),
    [
        ('429: {"message":"slow down"}', True),
        ('429 {"type":"error","error":{"type":"rate_limit_error","message":"slow"}}', True),
        ('sanduk API error (429): {"message":"slow down"}', True),
        ('402: {"message":"429 cents are left"}', False),
        ("4290: odd", False),
    ],
)
def test_a_rate_limit_is_known_by_its_status(text, limited):
    _, ended = read(failure(text), SETTLED)

    assert ended is not None
    assert ended.rate_limited is limited


def test_a_price_it_does_not_know_is_unknown_and_not_free():
    _, ended = read(answer("Done."), SETTLED)

    assert ended is not None
    assert ended.tally.cost_usd is None


def test_prices_it_knows_are_summed():
    priced = USAGE | {"cost": {"total": 0.25}}

    _, ended = read(answer("a", usage=priced), answer("b", usage=priced), SETTLED)

    assert ended is not None
    assert ended.tally.cost_usd == 0.5


def test_usage_it_does_not_tell_is_unknown():
    _, ended = read(answer("Done.", usage={"input": "many", "output": None}), SETTLED)

    assert ended is not None
    assert ended.tally == Tally(turns=1)


def test_what_a_tool_gave_back_is_told_and_cut():
    lines, _ = read(
        {
            "type": "tool_execution_end",
            "toolName": "bash",
            "isError": False,
            "result": {"content": [{"type": "text", "text": "7" * 5_000}]},
        }
    )

    cut = f"{'7' * 2_000} … [3,000 more characters]"
    assert lines == [Trace("note", "bash gave back", cut)]


def test_a_failed_tool_is_a_problem_with_its_output():
    lines, _ = read(
        {
            "type": "tool_execution_end",
            "toolName": "bash",
            "isError": True,
            "result": {"content": [{"type": "text", "text": "oops"}, {"type": "image"}]},
        }
    )

    assert lines == [Trace("problem", "bash failed", "oops")]
