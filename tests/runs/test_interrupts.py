"""Signals become requests to end the run, in the loop, and the handlers are restored."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from runs.interrupts import REASONS, Interrupts

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
