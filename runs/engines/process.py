"""Runs an engine's command line tool: bounded in time and memory, deaf to the terminal.

Whatever the tool prints may have come out of a container. It is capped while it is read and made
printable before anybody sees it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from runs.engines.base import EngineError, EngineUnavailable

STDOUT_LIMIT = 16 * 1024 * 1024  # bytes; `inspect` of a thousand containers is some 8 MB
STDERR_LIMIT = 64 * 1024  # bytes, the newest ones
LINE_LIMIT = 400  # characters of a line shown to a person
BUILD_LINE_LIMIT = 2000  # characters
PIPE_LIMIT = 256 * 1024  # bytes asyncio buffers before it stops reading
_CHUNK = 64 * 1024
# how a program written in Go, as docker and podman are, begins to say that it crashed
_CRASHES = ("fatal error: ", "panic: ", "runtime: ", "SIGSEGV", "SIGABRT")
_CRASH_LIMIT = 120
_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Completed:
    """What a finished command said. `stdout` is raw, `stderr` is printable text."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8", "replace").strip()


def printable(text: str, limit: int = LINE_LIMIT) -> str:
    """`text` with control, format and bidirectional characters escaped, cut at `limit`."""
    shown = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii")
        for c in text[: limit + 1].replace("\t", " ")
    )
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def last_line(text: str) -> str:
    """The last line that says something: engines put the cause there."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # docker ends a usage error with a pointer to its manual, which is no cause.
    told = [line for line in lines if not line.startswith(("See '", "Run '"))] or lines
    return printable(told[-1]) if told else "it said nothing"


def cause(stderr: str) -> str:
    """What a client of an engine gives as its reason.

    Of one that crashed it is the first line of the crash; what follows is its stack.
    """
    return crash(stderr) or last_line(stderr)


def crash(stderr: str) -> str:
    """The first line of a client's crash; "" when it did not crash."""
    for line in stderr.splitlines():
        if line.startswith(_CRASHES):
            return printable(f"the client crashed: {line.strip()}", _CRASH_LIMIT)
    return ""


async def start(
    argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None
) -> Process:
    """Start a command with both outputs on pipes, nothing on stdin, in a session of its own.

    The session keeps a Ctrl-C at the terminal away from it: a `rm` under way must end.
    `env` is added to this process's environment. Raises EngineUnavailable if it cannot start.
    """
    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            start_new_session=True,
            limit=PIPE_LIMIT,
        )
    except FileNotFoundError as exc:
        if cwd is not None and exc.filename == cwd:
            raise EngineError(f"{printable(cwd)} is not there") from None
        raise EngineUnavailable(f"{argv[0]} is not installed, or not on PATH") from None
    except (OSError, ValueError) as exc:
        raise EngineError(f"{argv[0]} could not be started: {printable(str(exc))}") from None


async def start_here(argv: Sequence[str], *, tty: bool, cwd: str | None = None) -> Process:
    """Start a command on this process's own standard streams.

    Args:
        tty: they are a terminal, which only our own process group may read; otherwise it gets a
            session of its own, like every other command.

    Raises EngineUnavailable if it cannot start.
    """
    try:
        return await asyncio.create_subprocess_exec(*argv, cwd=cwd, start_new_session=not tty)
    except FileNotFoundError:
        raise EngineUnavailable(f"{argv[0]} is not installed, or not on PATH") from None
    except (OSError, ValueError) as exc:
        raise EngineError(f"{argv[0]} could not be started: {printable(str(exc))}") from None


async def end(process: Process) -> None:
    """Kill a command that is not wanted any more, and reap it.

    Its whole group: a rootless podman does its work in a child, which would go on.
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def run(
    argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None
) -> Completed:
    """Run a command to its end.

    Raises EngineError when it takes longer than `timeout_s` seconds or prints more than
    STDOUT_LIMIT. Its exit code is not judged here.
    """
    process = await start(argv, env=env)
    stdout_pipe, stderr_pipe = _pipes(process)
    try:
        async with asyncio.timeout(timeout_s):
            stdout, stderr = await asyncio.gather(
                _read(stdout_pipe, STDOUT_LIMIT, argv), _read_tail(stderr_pipe)
            )
            code = await process.wait()
    except TimeoutError:
        raise EngineError(f"{_shown(argv)} did not answer within {timeout_s:g} s") from None
    finally:
        if process.returncode is None:
            await end(process)
    return Completed(code, stdout, stderr.decode("utf-8", "replace"))


async def run_lines(
    argv: Sequence[str],
    on_line: Callable[[str], None],
    *,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
) -> int:
    """Run a command and hand over each line of both its outputs, printable; return its exit code.

    Raises EngineError when it takes longer than `timeout_s` seconds.
    """
    process = await start(argv, env=env)
    stdout_pipe, stderr_pipe = _pipes(process)
    try:
        async with asyncio.timeout(timeout_s):
            await asyncio.gather(_feed(stdout_pipe, on_line), _feed(stderr_pipe, on_line))
            return await process.wait()
    except TimeoutError:
        raise EngineError(f"{_shown(argv)} did not end within {timeout_s:g} s") from None
    finally:
        if process.returncode is None:
            await end(process)


def _pipes(process: Process) -> tuple[asyncio.StreamReader, asyncio.StreamReader]:
    if process.stdout is None or process.stderr is None:
        raise RuntimeError("the process was started without pipes")
    return process.stdout, process.stderr


async def _read(stream: asyncio.StreamReader, limit: int, argv: Sequence[str]) -> bytes:
    data = bytearray()
    while chunk := await stream.read(_CHUNK):
        data += chunk
        if len(data) > limit:
            raise EngineError(f"{_shown(argv)} printed more than {limit} bytes")
    return bytes(data)


async def _read_tail(stream: asyncio.StreamReader) -> bytes:
    data = bytearray()
    while chunk := await stream.read(_CHUNK):
        data += chunk
        del data[:-STDERR_LIMIT]
    return bytes(data)


async def _feed(stream: asyncio.StreamReader, on_line: Callable[[str], None]) -> None:
    """Cut a stream into lines (a carriage return ends one too); the rest of a long one is lost."""
    pending = b""
    while chunk := await stream.read(_CHUNK):
        *lines, pending = (pending + chunk).replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            _tell(line, on_line)
        pending = pending[: 8 * BUILD_LINE_LIMIT]
    _tell(pending, on_line)


def _tell(line: bytes, on_line: Callable[[str], None]) -> None:
    line = _COLOUR.sub(b"", line)
    if line.strip():
        on_line(printable(line.decode("utf-8", "replace"), BUILD_LINE_LIMIT))


def _shown(argv: Sequence[str]) -> str:
    """The command and its verbs; values of options are left out of every text."""
    verbs = [argv[0]]
    for word in argv[1:3]:
        if word.startswith("-") or not word.isalpha():
            break
        verbs.append(word)
    return f"`{' '.join(verbs)}`"
