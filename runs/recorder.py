"""Appends a run's events and calls: one thread, small batches, caps that show."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import DatabaseError, close_old_connections, connections, transaction

from relay import CallRecord, EgressAttempt, Usage
from runs import clock, models
from runs.models import RelayCall, Run, RunEvent

T = TypeVar("T")
FLUSH_S = 0.5
EVENTS_MAX = 20_000
CALLS_MAX = 20_000
ATTEMPTS_MAX = 5_000
TEXT_MAX = 4_000
DETAIL_MAX = 8_000
CUT = "… [cut by sanduk]"


def _storable(text: str, limit: int) -> str:
    """No NUL, no lone surrogate, not longer than the column is meant to hold."""
    text = text[: limit + 1].replace("\x00", "␀").encode("utf-8", "replace").decode()
    if len(text) <= limit:
        return text
    mark = CUT if limit > 100 else CUT[0]  # a short column has no room for words
    return text[: limit - len(mark)] + mark


def _number(value: Any) -> Any:
    """Raw usage is whatever the provider wrote; JSON columns take no NaN or infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {_storable(str(k), 200): _number(v) for k, v in list(value.items())[:200]}
    if isinstance(value, list):
        return [_number(v) for v in value[:200]]
    return _storable(value, 1000) if isinstance(value, str) else value


class Recorder:
    """The one writer of a run's events and calls, and the thread all its other rows go through."""

    def __init__(self, run_pk: int) -> None:
        self._run_pk = run_pk
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recorder")
        self._events: list[RunEvent] = []
        self._calls: list[RelayCall] = []
        self._attempts: list[models.EgressAttempt] = []
        self._sequence = self._call_count = self._attempt_count = 0
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self.failure = ""  # the last database error, in words; nothing is lost silently

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._flush_often())

    def event(self, kind: str, text: str, detail: str = "") -> None:
        """Note one line. Past the cap one last line says so, and the rest is not kept."""
        self._sequence += 1
        if self._sequence > EVENTS_MAX:
            return
        if self._sequence == EVENTS_MAX:
            kind, text, detail = "note", f"the trace is cut here, after {EVENTS_MAX:,} lines", ""
        self._events.append(
            RunEvent(
                run_id=self._run_pk,
                sequence=self._sequence,
                at=clock.now(),
                kind=kind,
                text=_storable(text, TEXT_MAX),
                detail=_storable(detail, DETAIL_MAX),
            )
        )

    def call(self, record: CallRecord) -> None:
        """Note one finished call of the relay."""
        self._call_count += 1
        if self._call_count > CALLS_MAX:
            if self._call_count == CALLS_MAX + 1:
                self.event("note", f"calls are counted no further, after {CALLS_MAX:,}")
            return
        usage = record.usage or Usage()
        self._calls.append(
            RelayCall(
                run_id=self._run_pk,
                sequence=record.sequence,
                method=_storable(record.method, 16),
                path=_storable(record.path, 2000),
                protocol=record.protocol or "",
                model_asked=_storable(record.model_asked, 200),
                model_answered=_storable(record.model_answered, 200),
                status=record.status,
                refusal=_storable(record.refusal, 500),
                error=_storable(record.error, 500),
                completed=record.completed,
                started_at=dt.datetime.fromtimestamp(record.started_at, dt.UTC),
                first_byte_at=_moment(record.first_byte_at),
                ended_at=_moment(record.ended_at),
                bytes_in=record.bytes_in,
                bytes_out=record.bytes_out,
                input_tokens=usage.input_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                output_tokens=usage.output_tokens,
                reasoning_tokens=usage.reasoning_tokens,
                raw_usage=_number(record.raw_usage),
                reported_cost_usd=record.reported_cost_usd,
                cost_usd=record.cost_usd,
                cost_kind=record.cost_kind or "",
                clamped=record.clamped,
            )
        )

    def attempt(self, attempt: EgressAttempt) -> None:
        """Note one use of the egress door."""
        self._attempt_count += 1
        if self._attempt_count > ATTEMPTS_MAX:
            if self._attempt_count == ATTEMPTS_MAX + 1:
                self.event("note", f"ways out are noted no further, after {ATTEMPTS_MAX:,}")
            return
        self._attempts.append(
            models.EgressAttempt(
                run_id=self._run_pk,
                sequence=attempt.sequence,
                host=_storable(attempt.host, 300),
                port=attempt.port,
                address=_storable(attempt.address, 60),
                allowed=attempt.allowed,
                listed=attempt.listed,
                reason=_storable(attempt.reason, 500),
                flag=_storable(attempt.flag, 400),
                bytes_out=attempt.bytes_out,
                bytes_in=attempt.bytes_in,
                started_at=dt.datetime.fromtimestamp(attempt.started_at, dt.UTC),
                ended_at=_moment(attempt.ended_at),
            )
        )

    async def rows(self, change: Callable[[], T]) -> T:
        """Do a change of rows in the writer's thread, after everything noted so far."""
        await self.flush()
        return await asyncio.get_running_loop().run_in_executor(self._thread, _changed, change)

    async def flush(self) -> None:
        events, self._events = self._events, []
        calls, self._calls = self._calls, []
        attempts, self._attempts = self._attempts, []
        if not (events or calls or attempts):
            return
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self._write, events, calls, attempts)
            self.failure = ""
        except DatabaseError as exc:
            # kept for the next attempt: a full disk may have room again
            for row in (*events, *calls, *attempts):
                row.pk = None  # one that was given and rolled back may be another run's by now
            self._events[:0] = events
            self._calls[:0] = calls
            self._attempts[:0] = attempts
            self.failure = str(exc)

    def _write(
        self,
        events: list[RunEvent],
        calls: list[RelayCall],
        attempts: list[models.EgressAttempt],
    ) -> None:
        with transaction.atomic():
            RunEvent.objects.bulk_create(events)
            RelayCall.objects.bulk_create(calls)
            models.EgressAttempt.objects.bulk_create(attempts)
            if calls:
                self._count(calls)

    def _count(self, calls: list[RelayCall]) -> None:
        run = Run.objects.get(pk=self._run_pk)
        refused = sum(bool(call.refusal) for call in calls)
        Run.objects.filter(pk=self._run_pk).update(
            calls_relayed=run.calls_relayed + len(calls) - refused,
            calls_refused=run.calls_refused + refused,
            calls_completed=run.calls_completed + sum(call.completed for call in calls),
            first_call_at=run.first_call_at or min(call.started_at for call in calls),
        )

    async def _flush_often(self) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_S):
                    await self._stopping.wait()
            await self.flush()

    async def stop(self) -> None:
        self._stopping.set()
        if self._task is not None:
            await self._task  # never cancelled: a batch under way would be lost
        await self.flush()
        await asyncio.get_running_loop().run_in_executor(self._thread, connections.close_all)
        self._thread.shutdown(wait=True)


def _changed(change: Callable[[], T]) -> T:
    close_old_connections()  # a server that was started again wants a new one
    return change()


def _moment(epoch_s: float | None) -> dt.datetime | None:
    return None if epoch_s is None else dt.datetime.fromtimestamp(epoch_s, dt.UTC)
