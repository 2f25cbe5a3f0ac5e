"""Nothing a container prints, and no bug of a handler, comes out of the listener as an error."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.agents import get_agent
from runs.agents.base import Reader, Result, Trace
from runs.stream import LINE_MAX, Listener

AGENTS = ["claude", "codex", "pi"]


class Said(Reader):
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.lines: list[str] = []

    def record(self, record: dict[str, Any]) -> Iterable[Trace]:
        self.records.append(record)
        return [Trace("text", "seen")]

    def line(self, text: str) -> Iterable[Trace]:
        self.lines.append(text)
        return ()

    def result(self) -> Result | None:
        return None


class Broken(Said):
    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def _give(self) -> Any:
        if isinstance(self.answer, type):
            raise self.answer("a secret detail")
        return self.answer

    def record(self, record: dict[str, Any]) -> Any:
        return self._give()

    def line(self, text: str) -> Any:
        return self._give()

    def result(self) -> Any:
        return self._give()


def test_an_object_is_a_record_and_everything_else_a_line():
    reader = Said()
    listener = Listener(reader)

    for line in (
        b'{"a": 1}',
        b'  {"b": 2}',
        b"[1]",
        b"null",
        b'"x"',
        b"{broken",
        b"",
        b"  ",
        b"hi",
    ):
        listener.hear(line, cut=False)

    assert reader.records == [{"a": 1}, {"b": 2}]
    assert reader.lines == ["[1]", "null", '"x"', "{broken", "hi"]


def test_bytes_that_are_no_utf8_reach_the_reader_as_text():
    """L-1: one line of `\\xff\\xfe` orphaned the container."""
    reader = Said()

    Listener(reader).hear(b"\xff\xfe", cut=False)
    Listener(reader).hear(b'{"text": "\xff"}', cut=False)

    assert reader.records == []
    assert reader.lines == ["\ufffd\ufffd", '{"text": "\ufffd"}']


@pytest.mark.parametrize("opening", [b'{"a":', b"["])
def test_a_hundred_thousand_nested_objects_are_one_odd_line(opening):
    """L-1."""
    reader = Said()

    Listener(reader).hear(b'{"a":' + opening * 100_000, cut=False)
    closed = {b"[": b"]"}.get(opening, b"}")
    Listener(reader).hear(b'{"a":' + opening * 100_000 + b"1" + closed * 100_000 + b"}", cut=False)

    assert reader.records == []
    assert len(reader.lines) == 2


def test_a_line_that_was_cut_is_noted_and_not_read():
    reader = Said()

    [trace] = Listener(reader).hear(b'{"type": "result"' + b"x" * 1000, cut=True)

    assert trace.kind == "note"
    assert f"{LINE_MAX:,}" in trace.text
    assert len(trace.text) < 400
    assert reader.records == []


@pytest.mark.parametrize(
    "answer",
    [ValueError, RecursionError, MemoryError, None, 5, ["text"], [Trace("text", None)],  # type: ignore[arg-type]
     [Trace("boom", "x")], [Trace("text", "x", 5)], [None]],  # type: ignore[arg-type]
)  # fmt: skip
def test_a_reader_with_a_bug_is_a_problem_in_the_trace_and_no_error(answer):
    """L-1: any exception in stream reading skipped the container's removal."""
    listener = Listener(Broken(answer))

    for line in (b'{"a": 1}', b"plain"):
        [trace] = listener.hear(line, cut=False)
        assert trace.kind == "problem"
        assert "secret" not in trace.text


@pytest.mark.parametrize(
    "answer",
    [ValueError, MemoryError, 5, "ok", {"ok": True}, Result(ok=True, text=None)],  # type: ignore[arg-type]
)
def test_a_result_that_is_none_is_a_failure(answer):
    result = Listener(Broken(answer)).result()

    assert result is not None
    assert not result.ok
    assert "reader failed" in result.error
    assert "secret" not in result.error


NULLS = [
    {"type": "assistant", "message": None},
    {"type": "result", "subtype": "success", "total_cost_usd": None, "usage": None, "result": None},
    {"type": "turn.completed", "usage": None},
    {"type": "turn.completed", "usage": {"input_tokens": None}},
    {"type": "item.completed", "item": None},
    {"type": "message_end", "message": None},
    {"type": "agent_end", "messages": None},
    {"type": None},
]


@pytest.mark.parametrize("agent", AGENTS)
def test_null_fields_are_no_bug_of_a_real_reader(agent):
    """L-1: nulls in claude's, codex's and others' records crashed the first program."""
    listener = Listener(get_agent(agent).reader())

    for record in NULLS:
        for trace in listener.hear(json.dumps(record).encode(), cut=False):
            assert "reader failed" not in trace.text
    result = listener.result()
    assert result is None or "reader failed" not in result.error


@given(st.sampled_from(AGENTS), st.lists(st.binary(max_size=60) | st.text(max_size=60).map(
    lambda text: json.dumps({"type": text, "message": text}).encode())))  # fmt: skip
def test_nothing_that_is_printed_raises(agent, lines):
    listener = Listener(get_agent(agent).reader())

    for line in lines:
        for trace in listener.hear(line, cut=False):
            assert isinstance(trace.text, str)
    listener.result()
