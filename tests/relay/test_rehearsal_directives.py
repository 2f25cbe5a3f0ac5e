"""What a task may ask of the scripted model in its first lines."""

from __future__ import annotations

import time

import pytest

from relay.rehearsal.script import report_command
from tests.pace import stretched
from tests.relay.rehearsing import PATHS, SCHEMA, protocols, rehearsing, say, turn_of

pytestmark = pytest.mark.anyio


@protocols
async def test_a_task_may_ask_for_a_failure(protocol):
    async with rehearsing() as client:
        path, make = PATHS[protocol]
        request = make("rehearsal: status 429\nthe task", ("bash", SCHEMA), stream=True)
        response = await client.post(path, json=request)
        assert response.status_code == 429
        error = response.json()["error"]
        assert error["message"]
        assert error["type"] == "rate_limit_error"
        assert not client.records[0].completed


@protocols
async def test_a_task_may_ask_for_a_loop(protocol):
    async with rehearsing() as client:
        response = await say(
            client, protocol, "rehearsal: loop", ("bash", SCHEMA), results=["x"] * 5
        )
        assert turn_of(protocol, response)[1] == "bash"


async def test_directives_are_read_through_an_agents_quotation_marks():
    async with rehearsing() as client:
        task = '"rehearsal: command touch a\nrehearsal: loop\n\nSummarise."'
        response = await say(client, "openai-chat", task, ("bash", SCHEMA), results=["x"])
        assert turn_of("openai-chat", response)[1:] == ("bash", {"command": "touch a"})


async def test_a_directive_further_down_is_only_text():
    async with rehearsing() as client:
        task = "Summarise.\nrehearsal: status 500"
        await say(client, "openai-chat", task, ("bash", SCHEMA))


async def test_a_task_may_ask_for_slow_events_and_for_silence():
    async with rehearsing() as client:
        for directive, least in (("slow 0.02", 0.15), ("silent 0.2", 0.2)):
            started = time.monotonic()
            task = f"rehearsal: {directive}"
            await say(client, "anthropic-messages", task, ("bash", SCHEMA), stream=True)
            assert least <= time.monotonic() - started < stretched(3)


@pytest.mark.parametrize(
    "task",
    ["rehearsal: slow -1", "rehearsal: slow 1e9", "rehearsal: status 99999", "rehearsal: status ok",
     "rehearsal:", "rehearsal: command", "rehearsal: unknown thing"],
)  # fmt: skip
async def test_a_directive_that_makes_no_sense_changes_nothing(task):
    async with rehearsing() as client:
        response = await say(client, "openai-chat", task, ("bash", SCHEMA))
        assert turn_of("openai-chat", response)[2] == {"command": report_command()}
