"""A Ctrl-C whose exception Python drops is heard all the same, once a run listens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BEGIN = """\
import asyncio, os, signal
import django
from runs import early_signals
early_signals.keep()
django.setup()
from runs.interrupts import Interrupts

class Swallows:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        sum(range(100))  # the exception comes in here

async def told():
    found = []
    interrupts.listen(lambda kind, reason: found.append(kind))
    await asyncio.sleep(0.01)
    return found
"""
HEARD = "with Interrupts() as interrupts: print(asyncio.run(told()))\n"


def said(program: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        timeout=60,
        check=True,
    )
    return done.stdout.strip(), done.stderr


def test_a_ctrl_c_that_a_finalizer_drops_is_told():
    out, err = said(f"del_me = Swallows(); del del_me\n{HEARD}")

    assert "Exception ignored in: <function Swallows.__del__" in err
    assert "KeyboardInterrupt" in err
    assert out == "['cancelled']"


@pytest.mark.parametrize("times", [1, 3])
def test_a_ctrl_c_that_somebody_catches_is_told_once(times: int):
    catching = "try: signal.raise_signal(signal.SIGINT)\nexcept KeyboardInterrupt: pass\n"
    assert said(catching * times + HEARD) == ("['cancelled']", "")


def test_a_run_that_nobody_interrupted_hears_nothing():
    assert said(HEARD) == ("[]", "")


def test_what_one_run_was_told_is_not_told_to_the_next():
    interrupt = "with Interrupts() as interrupts: signal.raise_signal(signal.SIGINT)\n"
    assert said(interrupt + HEARD) == ("[]", "")


def test_a_signal_of_a_forked_child_is_not_its_parents():
    program = """\
if (child := os.fork()) == 0:
    try: signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt: os._exit(0)
os.waitpid(child, 0)
"""
    assert said(program + HEARD) == ("[]", "")


def test_an_event_loop_keeps_its_own_wake_up():
    program = """\
async def within():
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: print("heard"))
    with Interrupts():
        signal.raise_signal(signal.SIGUSR1)
        await asyncio.sleep(0.05)
asyncio.run(within())
"""
    assert said(program) == ("heard", "")
