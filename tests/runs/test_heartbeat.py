"""The heartbeat against a real database: it renews, and brings back who asked for what."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection

from runs import lease
from runs.lease import Heartbeat, owner
from runs.models import Run
from tests.factories import make_run

pytestmark = [pytest.mark.anyio, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "BEAT_S", 0.02)


class Heard:
    def __init__(self) -> None:
        self.stops: list[str] = []
        self.lost = 0

    def on_lost(self) -> None:
        self.lost += 1


@contextlib.asynccontextmanager
async def beating(run: Run, heard: Heard):
    heart = Heartbeat(run.uid, run.lease_owner, on_stop=heard.stops.append, on_lost=heard.on_lost)
    heart.start()
    try:
        yield heart
    finally:
        await heart.stop()


async def until(true: Callable[[], bool], timeout_s: float = 5) -> None:
    async with asyncio.timeout(timeout_s):
        while not await asyncio.to_thread(closing, true):  # noqa: ASYNC110 - rows cannot call
            await asyncio.sleep(0.02)


def closing(work: Callable[[], object]) -> object:
    try:
        return work()
    finally:
        connection.close()


def beats(run: Run) -> int:
    return Run.objects.values_list("lease_beats", flat=True).get(pk=run.pk)


@pytest.fixture
def run() -> Run:
    return make_run(state="running", lease_owner=owner())


async def test_it_renews_the_lease(run: Run):
    heard = Heard()
    async with beating(run, heard):
        await until(lambda: beats(run) >= 3)
    assert (heard.stops, heard.lost) == ([], 0)


async def test_it_stops_renewing_when_it_is_stopped(run: Run):
    async with beating(run, Heard()):
        await until(lambda: beats(run) >= 1)
    before = await asyncio.to_thread(closing, lambda: beats(run))
    await asyncio.sleep(0.1)
    assert await asyncio.to_thread(closing, lambda: beats(run)) == before


async def test_stopping_one_that_never_beat_is_no_error(run: Run):
    heart = Heartbeat(run.uid, run.lease_owner, on_stop=print, on_lost=print)
    await heart.stop()


async def test_it_reports_who_asked_the_run_to_stop_and_goes_on_renewing(run: Run):
    heard = Heard()
    async with beating(run, heard):
        await asyncio.to_thread(closing, lambda: Run.objects.request_stop(run.uid, "anna"))
        await until(lambda: bool(heard.stops))
        now = beats_later = await asyncio.to_thread(closing, lambda: beats(run))
        await until(lambda: beats(run) > now)
    assert set(heard.stops) == {"anna"}
    assert beats_later >= 1


async def test_it_reports_a_lost_lease_once_and_ends(run: Run):
    heard = Heard()
    async with beating(run, heard):
        seen = await asyncio.to_thread(closing, lambda: Run.objects.get(pk=run.pk))
        await until(lambda: Run.objects.end_lost(Run.objects.get(pk=seen.pk), "taken"))
        await until(lambda: heard.lost > 0)
        await asyncio.sleep(0.1)
    assert heard.lost == 1


@contextlib.contextmanager
def locked_database() -> Iterator[None]:
    """Somebody else holds the write lock, and nobody waits for it as long as in real life."""
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")
    finally:
        other.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("it is SQLite that locks all of itself")
    options = {**connection.settings_dict["OPTIONS"], "timeout": 0.05}
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", options)


@pytest.mark.usefixtures("impatient")
async def test_it_survives_a_database_that_is_locked_for_less_than_the_lease(run: Run, settings):
    settings.SANDUK_LEASE_SECONDS = 30
    heard = Heard()
    async with beating(run, heard):
        await until(lambda: beats(run) >= 1)
        with locked_database():
            await asyncio.sleep(0.4)
        now = await asyncio.to_thread(closing, lambda: beats(run))
        await until(lambda: beats(run) > now)
    assert heard.lost == 0


@pytest.mark.usefixtures("impatient")
async def test_it_gives_up_when_the_database_is_locked_for_longer_than_the_lease(
    run: Run, settings
):
    settings.SANDUK_LEASE_SECONDS = 0.3
    heard = Heard()
    async with beating(run, heard):
        with locked_database():
            await until(lambda: heard.lost > 0)
    assert heard.lost == 1


async def test_a_step_of_the_clock_does_not_lose_the_lease(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "clock"
    monkeypatch.setenv("SANDUK_CLOCK_FILE", str(file))
    heard = Heard()
    async with beating(run, heard):
        for offset in ("90000", "-90000", "0"):
            now = await asyncio.to_thread(closing, lambda: beats(run))
            await asyncio.to_thread(file.write_text, offset)
            await until(lambda now=now: beats(run) > now)
    assert heard.lost == 0
