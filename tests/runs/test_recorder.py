"""The recorder: every row in order, nothing that a column refuses, nothing lost silently."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import time
from typing import Any

import pytest
from django.db import OperationalError, connection

from relay import CallRecord, Usage
from runs import recorder
from runs.models import RelayCall, Run, RunEvent
from runs.recorder import CUT, Recorder
from tests.factories import make_run

pytestmark = [pytest.mark.anyio, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def run() -> Run:
    return make_run(state="running")


@contextlib.asynccontextmanager
async def recording(run: Run, *, started: bool = False):
    writer = Recorder(run.pk)
    if started:
        writer.start()
    yield writer
    await writer.stop()


async def look(work) -> Any:
    def there() -> Any:
        try:
            return work()
        finally:
            connection.close()

    return await asyncio.to_thread(there)


def events(run: Run) -> list[tuple[int, str, str, str]]:
    return list(run.events.values_list("sequence", "kind", "text", "detail"))


def call(sequence: int, **fields: Any) -> CallRecord:
    return CallRecord(sequence, "POST", "/v1/messages", time.time(), **fields)


async def test_events_keep_their_order(run: Run):
    async with recording(run) as writer:
        for number in range(250):
            writer.event("text", f"line {number}")
            if number % 60 == 0:
                await writer.flush()

    found = await look(lambda: events(run))
    assert [text for _, _, text, _ in found] == [f"line {n}" for n in range(250)]
    assert [sequence for sequence, *_ in found] == list(range(1, 251))


async def test_events_are_written_while_the_run_goes_on(run: Run, monkeypatch):
    monkeypatch.setattr(recorder, "FLUSH_S", 0.02)
    async with recording(run, started=True) as writer:
        writer.event("text", "now")
        async with asyncio.timeout(5):
            while not await look(lambda: events(run)):  # noqa: ASYNC110 - rows cannot call
                await asyncio.sleep(0.02)


async def test_text_that_no_column_takes_is_made_storable(run: Run):
    async with recording(run) as writer:
        writer.event("text", "a\x00b \ud800 🙂", "d\x00")

    assert await look(lambda: events(run)) == [(1, "text", "a␀b ? 🙂", "d␀")]


async def test_long_text_is_cut_with_a_mark(run: Run):
    async with recording(run) as writer:
        writer.event("text", "x" * 10_000_000, "y" * 10_000_000)
        writer.event("text", "x" * recorder.TEXT_MAX)

    [(_, _, text, detail), (_, _, whole, _)] = await look(lambda: events(run))
    assert (len(text), len(detail)) == (recorder.TEXT_MAX, recorder.DETAIL_MAX)
    assert text.endswith(CUT)
    assert detail.endswith(CUT)
    assert whole == "x" * recorder.TEXT_MAX


async def test_past_the_cap_one_last_line_says_so(run: Run, monkeypatch):
    monkeypatch.setattr(recorder, "EVENTS_MAX", 5)
    async with recording(run) as writer:
        for number in range(50):
            writer.event("text", str(number))

    found = await look(lambda: events(run))
    assert len(found) == 5
    assert found[-1][1:3] == ("note", "the trace is cut here, after 5 lines")


async def test_calls_are_counted_as_relayed_refused_and_completed(run: Run):
    async with recording(run) as writer:
        writer.call(call(1, status=200, completed=True, usage=Usage(input_tokens=7)))
        await writer.flush()
        writer.call(call(2, status=403, refusal="this model is not allowed"))
        writer.call(call(3, status=500))

    found = await look(lambda: Run.objects.get(pk=run.pk))
    assert (found.calls_relayed, found.calls_refused, found.calls_completed) == (2, 1, 1)
    assert await look(lambda: run.calls.get(sequence=1).input_tokens) == 7


async def test_past_the_cap_of_calls_a_note_says_so(run: Run, monkeypatch):
    monkeypatch.setattr(recorder, "CALLS_MAX", 2)
    async with recording(run) as writer:
        for number in range(5):
            writer.call(call(number + 1, status=200))

    assert await look(lambda: run.calls.count()) == 2
    assert [e[1:3] for e in await look(lambda: events(run))] == [
        ("note", "calls are counted no further, after 2")
    ]


async def test_a_raw_usage_of_nan_and_junk_is_stored_as_json(run: Run):
    """R-9: a cost that is NaN disabled a ceiling."""
    junk = {
        "cost": math.nan,
        "more": [math.inf, {"deep": -math.inf, "nul": "a\x00"}],
        "long": "x" * 5000,
        "k\x00": 1,
        "many": list(range(1000)),
    }
    async with recording(run) as writer:
        writer.call(call(1, raw_usage=junk))

    stored = await look(lambda: run.calls.get().raw_usage)
    json.dumps(stored, allow_nan=False)
    assert stored["cost"] == "nan"
    assert stored["more"] == ["inf", {"deep": "-inf", "nul": "a␀"}]
    assert len(stored["long"]) == 1000
    assert stored["k␀"] == 1
    assert len(stored["many"]) == 200


async def test_hostile_names_of_a_call_are_cut(run: Run):
    async with recording(run) as writer:
        record = call(1, model_asked="m" * 9999, model_answered="\x00" * 9999, error="e" * 9999)
        record.path, record.method = "/\x00" + "p" * 99_999, "M" * 999
        writer.call(record)

    stored = await look(lambda: RelayCall.objects.get())
    assert len(stored.path) == 2000
    assert stored.method == "M" * 15 + "…"
    assert len(stored.model_asked) == len(stored.model_answered) == 200
    assert "\x00" not in stored.path + stored.model_answered


async def test_what_the_database_refuses_once_is_written_the_next_time(run: Run, monkeypatch):
    """A row number that was given and rolled back belongs to another run by then."""
    other = await look(lambda: make_run(state="running"))
    real = Recorder._count
    failing = True

    def count(self: Recorder, calls: list[RelayCall]) -> None:
        if failing:
            raise OperationalError("disk I/O error")
        real(self, calls)

    monkeypatch.setattr(Recorder, "_count", count)
    async with recording(run) as writer:
        writer.event("text", "one")
        writer.call(call(1, status=200))
        await writer.flush()
        assert writer.failure == "disk I/O error"
        await look(
            lambda: RunEvent.objects.create(
                run=other, sequence=1, kind="text", text="theirs", at=other.created_at
            )
        )
        writer.event("text", "two")
        failing = False
        await writer.flush()
        assert writer.failure == ""

    assert [e[:3] for e in await look(lambda: events(run))] == [
        (1, "text", "one"),
        (2, "text", "two"),
    ]
    assert [e[2] for e in await look(lambda: events(other))] == ["theirs"]
    assert await look(lambda: run.calls.count()) == 1


async def test_a_batch_under_way_when_the_run_ends_is_not_lost(run: Run, monkeypatch):
    monkeypatch.setattr(recorder, "FLUSH_S", 0.01)
    real = Recorder._write

    def slow(self: Recorder, *rows: Any) -> None:
        time.sleep(0.2)
        real(self, *rows)

    monkeypatch.setattr(Recorder, "_write", slow)
    async with recording(run, started=True) as writer:
        for number in range(4):
            writer.event("text", str(number))
            await asyncio.sleep(0.05)

    assert [e[2] for e in await look(lambda: events(run))] == ["0", "1", "2", "3"]


async def test_other_rows_are_changed_after_everything_noted_so_far(run: Run):
    async with recording(run) as writer:
        writer.event("text", "before")
        assert await writer.rows(lambda: run.events.count()) == 1
