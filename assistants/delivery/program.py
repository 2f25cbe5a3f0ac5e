"""Runs one program of the operator's: bounded in time and in what is kept of its output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_CHUNK = 64 * 1024
_KEPT = 64 * 1024  # bytes, the newest: a program says at its end what went wrong
_LINGER_S = 1.0  # for output of what it left behind


@dataclass(frozen=True, slots=True)
class Ended:
    """`code` is None for one that was killed because its time was over."""

    code: int | None
    output: str


def run(argv: Sequence[str], stdin: bytes, *, env: Mapping[str, str], timeout_s: float) -> Ended:
    """Run it in a group of its own, which is killed behind it. Raises OSError."""
    return asyncio.run(_run(argv, stdin, env=env, timeout_s=timeout_s))


async def _run(
    argv: Sequence[str], stdin: bytes, *, env: Mapping[str, str], timeout_s: float
) -> Ended:
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=PIPE,
        stdout=PIPE,
        stderr=STDOUT,
        env=dict(env),
        cwd="/",
        start_new_session=True,
    )
    output = bytearray()
    reading = asyncio.create_task(_read(process, output))
    writing = asyncio.create_task(_write(process, stdin))
    code: int | None = None
    try:
        async with asyncio.timeout(timeout_s):
            code = await process.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_S):
                await asyncio.shield(reading)
    except TimeoutError:
        code = None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for task in (reading, writing):
            task.cancel()
        await asyncio.gather(reading, writing, return_exceptions=True)
        await process.wait()
    return Ended(code, bytes(output).decode("utf-8", "replace"))


async def _read(process: Process, kept: bytearray) -> None:
    assert process.stdout is not None  # noqa: S101 - it was asked for
    while chunk := await process.stdout.read(_CHUNK):
        kept += chunk
        del kept[:-_KEPT]


async def _write(process: Process, data: bytes) -> None:
    """Hand over what it may read; one that does not read it is judged by its exit code."""
    assert process.stdin is not None  # noqa: S101 - it was asked for
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()
