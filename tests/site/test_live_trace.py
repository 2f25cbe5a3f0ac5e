"""The live trace: nothing lost, nothing twice, resumable, and one look a second for everybody."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import AsyncClient
from django.urls import reverse

from runs import clock, live
from runs.models import RelayCall, Run, RunEvent
from tests.factories import make_run
from tests.site.pages import EVIL, somebody

pytestmark = [pytest.mark.anyio, pytest.mark.django_db(transaction=True)]


def write(run: Run, first: int, last: int, text: str = "line") -> None:
    RunEvent.objects.bulk_create(
        RunEvent(run=run, sequence=number, at=clock.now(), kind="text", text=f"{text} {number}")
        for number in range(first, last + 1)
    )


def end(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(
        state="ended", outcome="succeeded", ended_at=clock.now(), lease_owner="", lease_until=None
    )


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(live, "LOOK_S", 0.05)


async def numbers(stream: AsyncIterator[str]) -> list[int]:
    """The ids of all lines until the stream ends; its last event says that the run has ended."""
    found: list[int] = []
    names: list[str] = []
    async for event in stream:
        if event.startswith(":"):
            continue
        fields = dict(row.split(": ", 1) for row in event.strip().split("\n"))
        names.append(fields["event"])
        if fields["event"] == "line":
            assert json.loads(fields["data"])["sequence"] == int(fields["id"])
            found.append(int(fields["id"]))
    assert names[-1] == "ended"
    return found


async def rest() -> None:
    """Until the hub of this loop has nobody left, and gave its thread back."""
    if (looking := live.hub()._task) is not None:
        await asyncio.wait_for(looking, 5)
    assert live.hub()._thread is None
    # the thread of these tests' own rows has a connection, too
    await sync_to_async(connections.close_all)()


async def test_an_ended_run_is_told_whole_and_the_stream_ends():
    run = await sync_to_async(make_run)(state="ended")
    await sync_to_async(write)(run, 1, 1200)
    assert await numbers(live.stream(run.pk, 0)) == list(range(1, 1201))
    await rest()


async def test_a_reader_goes_on_behind_the_line_it_had():
    run = await sync_to_async(make_run)(state="ended")
    await sync_to_async(write)(run, 1, 30)
    assert await numbers(live.stream(run.pk, 27)) == [28, 29, 30]
    assert await numbers(live.stream(run.pk, 10**6)) == []
    await rest()


async def test_what_is_written_meanwhile_arrives_once_and_in_order():
    run = await sync_to_async(make_run)(state="running")
    reading = asyncio.create_task(numbers(live.stream(run.pk, 0)))
    for first in range(1, 100, 9):
        await sync_to_async(write)(run, first, first + 8)
        await asyncio.sleep(0.03)
    await sync_to_async(end)(run)
    assert await asyncio.wait_for(reading, 10) == list(range(1, 100))
    await rest()


async def test_fifty_readers_cost_one_look_at_a_time():
    run = await sync_to_async(make_run)(state="running")
    await sync_to_async(write)(run, 1, 5)
    began = asyncio.get_running_loop().time()
    readers = [asyncio.create_task(numbers(live.stream(run.pk, 0))) for _ in range(50)]
    await asyncio.sleep(0.5)
    await sync_to_async(write)(run, 6, 10)
    await asyncio.sleep(0.5)
    await sync_to_async(end)(run)
    for reader in readers:
        assert await asyncio.wait_for(reader, 10) == list(range(1, 11))
    took_s = asyncio.get_running_loop().time() - began
    assert 1 <= live.hub().looks <= took_s / live.LOOK_S + 2
    await rest()


async def test_readers_of_two_runs_each_get_their_own():
    one, two = [await sync_to_async(make_run)(state="running") for _ in range(2)]
    readers = [asyncio.create_task(numbers(live.stream(run.pk, 0))) for run in (one, two)]
    await asyncio.sleep(0.1)
    await sync_to_async(write)(one, 1, 3)
    await sync_to_async(write)(two, 1, 700)
    await sync_to_async(end)(one)
    await sync_to_async(end)(two)
    assert await asyncio.wait_for(readers[0], 10) == [1, 2, 3]
    assert await asyncio.wait_for(readers[1], 10) == list(range(1, 701))
    await rest()


async def test_the_figures_of_the_head_come_when_they_are_others():
    run = await sync_to_async(make_run)(state="running", started_at=clock.now())
    stream = live.stream(run.pk, 0)

    async def told() -> dict[str, Any]:
        event = await asyncio.wait_for(anext(stream), 5)
        assert event.startswith("event: figures\ndata: ")
        found: dict[str, Any] = json.loads(event.split("data: ", 1)[1])
        return found

    first = await told()
    assert (first["chip"]["word"], first["tokens"], first["seal"]) == ("running", "0", "")
    await sync_to_async(RelayCall.objects.create)(
        run=run, sequence=1, method="POST", path="/v1", protocol="openai", started_at=clock.now(),
        input_tokens=1200, output_tokens=34, cost_usd=0.0123, cost_kind="exact",
    )  # fmt: skip
    assert await told() == first | {"tokens": "1,234", "cost": "$0.0123"}
    rows = Run.objects.filter(pk=run.pk)
    await rows.aupdate(calls_relayed=1, certificate={"headline": "sealed: no way out"})
    assert await told() == first | {
        "tokens": "1,234", "cost": "$0.0123", "calls": "1", "seal": "sealed: no way out",
        "stands": "running-010001",
    }  # fmt: skip
    await sync_to_async(end)(run)
    assert (await told())["chip"]["word"] == "succeeded"
    assert "event: ended" in await anext(stream)
    await stream.aclose()
    await rest()


async def test_a_reader_that_leaves_is_forgotten_and_the_looking_stops():
    run = await sync_to_async(make_run)(state="running")
    await sync_to_async(write)(run, 1, 2)
    stream = live.stream(run.pk, 0)
    assert "id: 1" in await anext(stream)
    assert "id: 2" in await anext(stream)
    assert "event: figures" in await anext(stream)
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0.1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await stream.aclose()
    await rest()


async def test_a_reader_that_falls_behind_is_let_go_without_a_false_end(monkeypatch):
    run = await sync_to_async(make_run)(state="running")
    monkeypatch.setattr(live, "WAITING_MAX", 10)
    stream = live.stream(run.pk, 0)
    assert "event: figures" in await anext(stream)
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0.1)
    await sync_to_async(write)(run, 1, 50)
    with pytest.raises(StopAsyncIteration):
        await asyncio.wait_for(waiting, 5)
    await rest()


async def test_the_address_is_for_who_may_see_runs_and_resumes_by_the_header():
    run = await sync_to_async(make_run)(state="ended")
    await sync_to_async(write)(run, 1, 4, EVIL)
    address = reverse("run-events", args=[run.uid])
    client = AsyncClient()
    assert (await client.get(address))["Location"].startswith(reverse("admin:login"))
    await client.aforce_login(await sync_to_async(somebody)("nobody"))
    assert (await client.get(address)).status_code == 403
    await client.aforce_login(await sync_to_async(somebody)("vera", "viewer"))
    assert (await client.post(address)).status_code == 405
    assert (await client.get(reverse("run-events", args=["none"]))).status_code == 404

    answer = await client.get(f"{address}?after=1", headers={"Last-Event-ID": "3"})
    assert answer["Content-Type"] == "text/event-stream"
    assert "no-cache" in answer["Cache-Control"]
    told = "".join([part.decode() async for part in answer.streaming_content])
    assert told.count("event: line") == 1
    assert "id: 4" in told
    assert "event: ended" in told
    for raw in ("\x1b", "\u202e", "\u200b", "\\u202e", "\\u001b"):
        assert raw not in told.replace("\\\\u202e", "").replace("\\\\u200b", "")
    for odd in ("-1", "x", "9" * 30, "1; drop"):
        answer = await client.get(f"{address}?after={odd}")
        assert answer.status_code == 200
        told = "".join([part.decode() async for part in answer.streaming_content])
        assert "event: ended" in told
    await rest()
