"""One clock, which a test can steer in processes that already run."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runs import clock
from tests.pace import stretched


@pytest.fixture
def steered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "clock"
    monkeypatch.setenv(clock.STEER, str(file))
    return file


SLEEPER = """
import asyncio
from runs import clock

async def main():
    sleeping = asyncio.create_task(clock.sleep(3600))
    await asyncio.sleep(0)
    print("ready", flush=True)
    await sleeping
    print(clock.now().isoformat(), flush=True)

asyncio.run(main())
"""


def ahead_s() -> float:
    """How far the clock is ahead of the machine's."""
    return (clock.now() - dt.datetime.now(dt.UTC)).total_seconds()


def test_it_is_the_real_time_when_nobody_steers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(clock.STEER, raising=False)

    assert abs(clock.now() - dt.datetime.now(dt.UTC)) < dt.timedelta(seconds=1)
    before = clock.monotonic()
    assert 0 <= clock.monotonic() - before < 1


def test_a_step_forward_moves_both_clocks(steered: Path):
    steered.write_text("0")
    before = clock.monotonic()
    steered.write_text("3600")

    assert abs(ahead_s() - 3600) < 1
    assert 3600 <= clock.monotonic() - before < 3601


def test_a_step_back_moves_the_wall_clock_alone(steered: Path):
    steered.write_text("0")
    before = clock.monotonic()
    steered.write_text("-3600")

    assert abs(ahead_s() + 3600) < 1
    assert 0 <= clock.monotonic() - before < 1

    steered.write_text("-3500")
    assert 100 <= clock.monotonic() - before < 101


@pytest.mark.parametrize("content", ["", "soon", "1 2"])
def test_a_file_that_is_being_rewritten_means_real_time(steered: Path, content):
    steered.write_text(content)

    assert abs(ahead_s()) < 1


def test_another_process_that_already_runs_feels_a_step(steered: Path):
    steered.write_text("0")
    with subprocess.Popen(
        [sys.executable, "-c", SLEEPER],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env=os.environ,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        steered.write_text("7200")
        try:
            said, _ = process.communicate(timeout=10)
        finally:
            process.kill()

    ahead = dt.datetime.fromisoformat(said.strip()) - dt.datetime.now(dt.UTC)
    assert 7190 < ahead.total_seconds() < 7210


@pytest.mark.anyio
async def test_a_sleep_lasts_as_long_as_asked(steered: Path):
    before = time.monotonic()
    await clock.sleep(0.2)
    assert 0.19 < time.monotonic() - before < stretched(2)


@pytest.mark.anyio
async def test_a_step_forward_ends_a_sleep(steered: Path):
    task = asyncio.create_task(clock.sleep(3600))
    await asyncio.sleep(0.05)
    assert not task.done()
    await asyncio.to_thread(steered.write_text, "3601")
    async with asyncio.timeout(2):
        await task
