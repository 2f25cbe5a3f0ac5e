"""The scripted agent: an ordinary third-party handler, installed as one."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from runs.agents import agent_names, get_agent, plugin_problems
from runs.agents.base import AgentRefusal, Request, Result, Tally, Trace
from tests.runs.agents.shapes import REHEARSAL, RELAY, TOKEN


@pytest.mark.parametrize(("name", "calls_model"), [("scripted", True), ("scripted-offline", False)])
def test_it_is_found_through_its_entry_point(name, calls_model):
    agent = get_agent(name)

    assert name in agent_names(for_tests=True)
    assert plugin_problems() == ()
    assert agent.calls_model is calls_model
    assert type(agent).__module__ == "sanduk_scripted"


def test_nobody_is_offered_it():
    assert not [name for name in agent_names() if name.startswith("scripted")]
    with pytest.raises(AgentRefusal) as refused:
        get_agent("nope")
    assert "scripted" not in str(refused.value)


def test_without_a_model_it_needs_no_provider_that_serves_one():
    nobody = replace(REHEARSAL, name="none", routes=())

    get_agent("scripted-offline").check(Request(), nobody)
    with pytest.raises(AgentRefusal, match="provider none serves"):
        get_agent("scripted").check(Request(), nobody)


def test_its_recipe_is_a_file_beside_it():
    recipe = json.loads(Path(get_agent("scripted").recipe).read_text("utf-8"))

    assert recipe["agent"] == "scripted"
    assert recipe["entrypoint"] == ["sh"]


def test_it_is_started_as_a_shell_that_knows_the_relay():
    launched = get_agent("scripted").launch(
        Request(), REHEARSAL, task="exit", root=RELAY, credential=TOKEN
    )

    assert launched.argv == ("-s",)
    assert launched.task_on_stdin
    assert launched.env == {
        "RELAY_URL": f"{RELAY}/v1",
        "RELAY_TOKEN": TOKEN,
        "RELAY_MODEL": "rehearsal",
    }


def test_what_its_script_prints_is_read():
    script = """
        echo '{"type": "text", "text": "hello"}'
        echo '{"type": "tool", "text": "sh", "detail": {"cmd": "true"}}'
        echo 'no JSON'
        echo '{"type": "result", "ok": true, "text": "done", "input_tokens": 3}'
        exit
        When you are done, this is not read any more.
    """
    launched = get_agent("scripted").launch(
        Request(), REHEARSAL, task=script, root=RELAY, credential=TOKEN
    )
    done = subprocess.run(
        ["sh", *launched.argv],
        input=script,
        env={"PATH": "/usr/bin:/bin", **launched.env},
        text=True,
        capture_output=True,
        check=True,
        timeout=30,
    )
    reader = get_agent("scripted").reader()

    lines = [
        trace
        for line in done.stdout.splitlines()
        if line.startswith("{")
        for trace in reader.record(json.loads(line))
    ]

    assert done.stderr == ""
    assert lines == [Trace("text", "hello"), Trace("tool", "sh", '{"cmd": "true"}')]
    assert reader.result() == Result(ok=True, text="done", tally=Tally(input_tokens=3))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"ok": False, "error": {"message": "no"}}, Result(ok=False, error="no")),
        ({"ok": "yes"}, Result(ok=False, error="the script says it failed")),
        ({"ok": True, "needs_input": True}, Result(ok=True, needs_input=True)),
        (
            {"ok": False, "error": "slow", "rate_limited": True, "resets_at": 9},
            Result(ok=False, error="slow", rate_limited=True, resets_at=9.0),
        ),
    ],
)
def test_its_result_may_say_anything(fields, expected):
    reader = get_agent("scripted").reader()

    list(reader.record({"type": "result", **fields}))

    assert reader.result() == expected
