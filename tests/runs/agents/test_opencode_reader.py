"""What is read from opencode's `--format json`; the records have the shape of real ones."""

from __future__ import annotations

from typing import Any

import pytest

from runs.agents.base import Result, Tally, Trace
from runs.agents.opencode import OpencodeReader

TOKENS = {"total": 1066, "input": 600, "output": 60, "reasoning": 6, "cache": {"read": 400}}


def read(*records: dict[str, Any]) -> tuple[list[Trace], Result | None]:
    reader = OpencodeReader()
    lines = [line for record in records for line in reader.record(record)]
    return lines, reader.result()


def part(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": 1, "sessionID": "s", "part": {"id": "p"} | fields}


def said(text: Any) -> dict[str, Any]:
    return part("text", type="text", text=text)


def tool(**state: Any) -> dict[str, Any]:
    return part("tool_use", type="tool", tool="bash", callID="c", state=state)


def step(reason: Any = "stop", tokens: Any = None, cost: Any = 0) -> dict[str, Any]:
    return part("step_finish", reason=reason, tokens=tokens or TOKENS, cost=cost)


def failure(message: Any = "too fast", status: Any = 429, name: Any = "APIError") -> dict[str, Any]:
    data = {"message": message, "statusCode": status, "isRetryable": True}
    return {"type": "error", "timestamp": 1, "error": {"name": name, "data": data}}


def test_a_good_run_is_traced_and_told():
    lines, ended = read(
        part("step_start"),
        said("I count."),
        tool(status="completed", input={"command": "ls"}, output="a", metadata={"exit": 0}),
        step("tool-calls"),
        part("step_start"),
        said("There is one."),
        step(),
    )

    assert lines == [
        Trace("text", "I count."),
        Trace("tool", "bash", '{"command": "ls"}'),
        Trace("note", "bash gave back", "a"),
        Trace("text", "There is one."),
    ]
    assert ended == Result(
        ok=True,
        text="There is one.",
        tally=Tally(input_tokens=2000, cached_tokens=800, output_tokens=132, turns=2),
    )


@pytest.mark.parametrize(
    ("state", "line"),
    [
        (
            {"status": "completed", "output": "no such file", "metadata": {"exit": 2}},
            Trace("problem", "bash ended with exit code 2", "no such file"),
        ),
        (
            {"status": "error", "error": "the user said no"},
            Trace("problem", "bash failed", "the user said no"),
        ),
    ],
)
def test_a_tool_that_failed_is_a_problem(state, line):
    lines, _ = read(tool(input={"command": "cat x"}, **state))

    assert lines == [Trace("tool", "bash", '{"command": "cat x"}'), line]


def test_a_failed_call_is_told_in_words():
    lines, ended = read(failure("the key is unknown", 401))

    assert lines == [Trace("problem", "the key is unknown (status 401)")]
    assert ended == Result(ok=False, error="the key is unknown (status 401)")


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"type": "error"}, "an error without words"),
        ({"type": "error", "error": {"name": "UnknownError"}}, '{"name": "UnknownError"}'),
        ({"type": "error", "error": "it broke"}, "it broke"),
        ({"type": "error", "error": {"message": "it broke"}}, "it broke"),
        (failure("Unable to connect", None), "Unable to connect"),
    ],
)
def test_every_error_has_words(record, words):
    _, ended = read(record)

    assert ended == Result(ok=False, error=words)


@pytest.mark.parametrize(("status", "limited"), [(429, True), (402, False), ("429", False)])
def test_a_rate_limit_is_known_by_its_status(status, limited):
    _, ended = read(failure("429 wishes", status))

    assert ended is not None
    assert ended.rate_limited is limited


def test_a_call_that_went_well_after_an_error_clears_it():
    _, ended = read(failure(), said("Done."), step())

    assert ended is not None
    assert (ended.ok, ended.error, ended.rate_limited) == (True, "", False)


def test_an_error_after_a_good_step_fails_the_run():
    _, ended = read(step("tool-calls"), failure("nothing left", 402))

    assert ended is not None
    assert (ended.ok, ended.error) == (False, "nothing left (status 402)")
    assert ended.tally.turns == 1


@pytest.mark.parametrize(
    "records", [[], [said("Done.")], [step("tool-calls")]], ids=["nothing", "text", "a tool's step"]
)
def test_what_stops_on_the_way_has_no_result(records):
    assert read(*records)[1] is None


@pytest.mark.parametrize("reason", ["error", "content-filter"])
def test_a_step_that_ended_badly_is_a_failure(reason):
    _, ended = read(step(reason))

    assert ended is not None
    assert (ended.ok, ended.error) == (False, f"the model call ended: {reason}")


def test_prices_it_knows_are_summed_and_others_are_unknown():
    assert read(step(cost=0.25), step(cost=0.5))[1].tally.cost_usd == 0.75
    assert read(step(cost=0))[1].tally.cost_usd is None


def test_numbers_that_are_none_count_as_not_told():
    tokens = {"input": "many", "output": -1, "reasoning": True, "cache": [1]}

    assert read(step(tokens=tokens, cost="free"))[1].tally == Tally(turns=1)
