"""Commands of an engine: ended in time, out of reach of the terminal, capped."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from runs.engines.base import EngineError
from runs.engines.process import run, run_lines

pytestmark = pytest.mark.anyio


async def test_a_command_that_hangs_is_ended_and_reported():
    with pytest.raises(EngineError, match=r"`sleep` did not answer within 0\.2 s"):
        await run(("sleep", "30"), timeout_s=0.2)


async def test_a_command_is_out_of_reach_of_the_terminal():
    script = "import os, sys; print(os.getsid(0) == os.getpid(), repr(sys.stdin.read()))"
    done = await run((sys.executable, "-c", script), timeout_s=30)

    assert done.text == "True ''"


async def test_a_command_that_is_ended_takes_its_children_along(tmp_path: Path):
    """A rootless podman works in a child of the process we start."""
    with pytest.raises(EngineError, match="did not answer"):
        await run(("sh", "-c", f"(sleep 0.6; touch {tmp_path}/late) & wait"), timeout_s=0.2)

    await asyncio.sleep(0.8)
    assert not (tmp_path / "late").exists()


async def test_a_command_that_floods_is_ended_and_reported():
    with pytest.raises(EngineError, match="printed more than"):
        await run(("yes",), timeout_s=30)


async def test_lines_of_a_build_are_capped_and_printable():
    lines: list[str] = []
    script = (
        "import sys; sys.stdout.write('\\x1b[91ma\\x1b[0m\\rb\\x1b[2J\\n' + 'y' * 10**6 + '\\nend')"
    )
    code = await run_lines((sys.executable, "-c", script), lines.append, timeout_s=30)

    assert code == 0
    assert lines[:2] == ["a", "b\\x1b[2J"]
    assert all(len(line) <= 2000 for line in lines)
    assert lines[-1] == "end"
