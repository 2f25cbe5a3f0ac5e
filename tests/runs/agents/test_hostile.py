"""No record of any shape makes a reader raise, or say what cannot be stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.agents import get_agent
from runs.agents.base import Reader, Trace
from runs.agents.evidence import ANSWER_CHARS, ERROR_CHARS, TEXT_CHARS
from runs.agents.registry import BUILT_IN

AGENTS = (*BUILT_IN, "scripted")

KINDS = """
    assistant user system result rate_limit_event item.started item.completed error turn.started
    turn.completed turn.failed message_end tool_execution_start tool_execution_end agent_start
    agent_end agent_settled auto_retry_start auto_retry_end text tool problem api_retry init
    permission_denied success tool_use tool_result agent_message command_execution file_change
    rejected failed stop aborted turn_usage tool_call turn retry complete max_turns
    step_finish tool-calls message
""".split()  # noqa: SIM905 - a word a line would be two screens
KEYS = """
    type subtype message content text item role stopReason errorMessage usage input output
    cacheRead cacheWrite cost total input_tokens cached_input_tokens output_tokens is_error result
    errors permission_denials tool_use_id id name error status exit_code command num_turns
    total_cost_usd api_error_status rate_limit_info resetsAt willRetry aborted success finalError
    attempt maxAttempts args toolName isError ok needs_input rate_limited resets_at detail
    parent_tool_use_id is_api_error_message kind tool_name outcome turns cached
    part reason tokens cache read write data statusCode state tool metadata exit
    parameters tool_id stats total_tokens calls completed failed failure cost_status
    estimated_cost_usd api_calls cache_read_tokens
""".split()  # noqa: SIM905 - a word a line would be two screens

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(KINDS)
    | st.sampled_from(["\0", "\ud800", "{" * 50, '{"message": 1}'])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
        | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=25,
)
records = st.lists(
    st.builds(
        lambda kind, rest: rest | {"type": kind},
        st.sampled_from(KINDS) | scalars,
        st.dictionaries(st.sampled_from(KEYS), values, max_size=8),
    ),
    max_size=6,
)


def check_line(line: Trace) -> None:
    assert isinstance(line, Trace)
    assert len(line.text) <= TEXT_CHARS + 100
    json.dumps([line.text, line.detail], ensure_ascii=False).encode("utf-8")
    assert "\0" not in line.text + line.detail


def check(reader: Reader, given_records: list[dict[str, Any]]) -> None:
    for record in given_records:
        for line in reader.record(record):
            check_line(line)
        ended = reader.result()
        if ended is None:
            continue
        assert isinstance(ended.ok, bool)
        assert bool(ended.error) is not ended.ok
        assert len(ended.text) <= ANSWER_CHARS + 100
        assert len(ended.error) <= ERROR_CHARS + 100
        f"{ended.text}{ended.error}".encode()
        for number in (ended.tally.input_tokens, ended.tally.output_tokens, ended.tally.turns):
            assert number is None or 0 <= number <= 10**15
        assert ended.tally.cost_usd is None or 0 <= ended.tally.cost_usd < float("inf")
        assert ended.resets_at is None or 0 <= ended.resets_at <= 10**15


@pytest.mark.parametrize("name", AGENTS)
@given(records)
def test_no_records_make_a_reader_raise(name, given_records):
    check(get_agent(name).reader(), given_records)


@pytest.mark.parametrize("name", AGENTS)
@given(st.text())
def test_no_line_makes_a_reader_raise(name, text):
    for line in get_agent(name).reader().line(text):
        check_line(line)


@pytest.mark.parametrize("name", AGENTS)
def test_fields_nested_deeper_than_python_recurses_are_survived(name):
    deep: Any = "end"
    for _ in range(20_000):
        deep = {"message": [deep]}
    fields = dict.fromkeys(KEYS, deep)

    for kind in KINDS:
        check(get_agent(name).reader(), [fields | {"type": kind}])


@pytest.mark.parametrize("name", AGENTS)
def test_a_flood_of_tool_calls_keeps_memory_bounded(name):
    reader = get_agent(name).reader()
    for number in range(20_000):
        block = {"type": "tool_use", "id": f"call-{number}", "name": "Bash", "input": {}}
        list(reader.record({"type": "assistant", "message": {"content": [block]}}))
        list(
            reader.record(
                {"type": "system", "subtype": "permission_denied", "tool_use_id": f"call-{number}"}
            )
        )

    held = [value for value in vars(reader).values() if isinstance(value, dict | set)]
    assert all(len(value) <= 1_000 for value in held)
