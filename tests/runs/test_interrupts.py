"""Signals become requests to end the run, in the loop, and the handlers are restored."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runs.interrupts import REASONS, WITHOUT_CLUSTER, Interrupts

NUMBERS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (signal.SIGINT, "cancelled"),
        (signal.SIGTERM, "interrupted"),
        (signal.SIGHUP, "interrupted"),
    ],
)
async def test_a_signal_is_told_in_the_running_loop(number, kind):
    told: list[tuple[str, str]] = []
    with Interrupts() as interrupts:
        interrupts.listen(lambda *halt: told.append(halt))
        os.kill(os.getpid(), number)
        await asyncio.sleep(0.05)

    assert [halt for halt, _ in told] == [kind]
    assert told[0][1]


@pytest.fixture
def leader():
    """A process that leads a group."""
    process = subprocess.Popen(["sleep", "30"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


@pytest.mark.anyio
@pytest.mark.parametrize("is_there", [True, False])
async def test_a_worker_whose_cluster_was_killed_does_not_say_that_it_was_told_to_stop(
    monkeypatch, leader, is_there
):
    monkeypatch.setenv("Q_CLUSTER_NAME", "runs")
    monkeypatch.setattr(os, "getpgrp", lambda: leader.pid)
    told: list[tuple[str, str]] = []
    if not is_there:
        leader.kill()
        leader.wait()
    with Interrupts() as interrupts:
        interrupts.listen(lambda *halt: told.append(halt))
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.05)

    assert told == [REASONS[signal.SIGTERM] if is_there else WITHOUT_CLUSTER]


@pytest.mark.anyio
async def test_every_further_signal_is_told_too():
    """L-2: a second one hurries the teardown, and never skips it."""
    told: list[str] = []
    with Interrupts() as interrupts:
        interrupts.listen(lambda kind, _: told.append(kind))
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.02)

    assert told == ["interrupted"] * 3


@pytest.mark.anyio
async def test_a_signal_before_anybody_listens_is_not_lost():
    """L-5: signals between the record's creation and the handlers used the default action."""
    told: list[str] = []
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGTERM)
        interrupts.listen(lambda kind, _: told.append(kind))

    assert told == ["interrupted"]


def test_a_signal_after_the_loop_was_closed_does_nothing():
    with Interrupts() as interrupts:

        async def listen() -> None:
            interrupts.listen(lambda *_: pytest.fail("nobody is left to be told"))

        asyncio.run(listen())
        os.kill(os.getpid(), signal.SIGTERM)


def test_the_handlers_that_were_there_come_back():
    before = [signal.getsignal(number) for number in NUMBERS]
    with Interrupts():
        assert [signal.getsignal(number) for number in NUMBERS] != before
    assert [signal.getsignal(number) for number in NUMBERS] == before
    assert set(REASONS) == set(NUMBERS)


UNDER = """\
import asyncio, os, signal
import django
django.setup()
from runs.interrupts import Interrupts

async def told():
    found = []
    interrupts.listen(lambda kind, reason: found.append(kind))
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), number)
        await asyncio.sleep(0.05)
    return found

with Interrupts() as interrupts:
    print(asyncio.run(told()))
print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)
"""


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["env"], "['interrupted', 'cancelled', 'interrupted']\nFalse"),
        (["nohup"], "['cancelled', 'interrupted']\nTrue"),
        # a shell without job control has what it puts in the background ignore Ctrl-C
        (["sh", "-c", '"$@" & wait', "sh"], "['interrupted', 'interrupted']\nFalse"),
    ],
)
def test_what_a_process_was_started_to_ignore_stays_ignored(command: list[str], told: str):
    done = subprocess.run(
        [*command, sys.executable, "-c", UNDER],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == told, done.stderr
