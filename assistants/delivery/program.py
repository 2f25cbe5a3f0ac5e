"""Runs one program of the operator's: bounded in time and in what is kept of its output."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runs import clock

DIRECTORY = "/"  # whoever delivers, from wherever: the same words mean the same
_WORDS = re.compile(r"[\s;|&<>()\"'`=$]+")
_CHUNK = 64 * 1024
_KEPT = 64 * 1024  # bytes, the newest: a program says at its end what went wrong
_REST_MAX = 16  # pieces; a pipe holds no more than one
_LOOK_S = 0.05  # how often its end is looked for while it is silent


@dataclass(frozen=True, slots=True)
class Ended:
    """`code` is None for one that was killed because its time was over."""

    code: int | None
    output: str


def misplaced(argv: Sequence[str]) -> list[str]:
    """The words that name a file from the directory of this process, and none from DIRECTORY."""
    words = dict.fromkeys(word for each in argv for word in (each, *_WORDS.split(each)))
    return [word for word in words if _is_there(word) and not _is_there(f"{DIRECTORY}{word}")]


def _is_there(word: str) -> bool:
    try:
        return bool(word) and Path(word).is_file()
    except (OSError, ValueError):
        return False


def run(argv: Sequence[str], stdin: bytes, *, env: Mapping[str, str], timeout_s: float) -> Ended:
    """Run it in a group of its own, which is killed behind it. Raises OSError."""
    process = subprocess.Popen(
        list(argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(env),
        cwd=DIRECTORY,
        start_new_session=True,
    )
    with _Talk(process, stdin) as talk:
        try:
            is_over = talk.until_end(clock.monotonic() + timeout_s)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
        talk.rest()
    return Ended(code if is_over else None, talk.said())


class _Talk:
    """Feeds a program and listens to it, both as fast as it likes, until it ends."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes) -> None:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the program was started without pipes")
        self._process, self._left = process, memoryview(stdin)
        self._in, self._out = process.stdin.fileno(), process.stdout.fileno()
        self._kept = bytearray()
        self._ready = selectors.DefaultSelector()

    def __enter__(self) -> _Talk:
        for descriptor, event in (
            (self._in, selectors.EVENT_WRITE),
            (self._out, selectors.EVENT_READ),
        ):
            os.set_blocking(descriptor, False)
            self._ready.register(descriptor, event)
        return self

    def __exit__(self, *_: object) -> None:
        self._ready.close()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def until_end(self, deadline: float) -> bool:
        """Whether it ended before the deadline; what it left behind may hold the pipes."""
        while self._process.poll() is None:
            if clock.monotonic() >= deadline:
                return False
            if self._ready.get_map():
                self._exchange(_LOOK_S)
            else:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_LOOK_S)
        return True

    def rest(self) -> None:
        """What it had said by its end; whoever still holds the pipe is not waited for."""
        for _ in range(_REST_MAX):  # one that got away may never stop talking
            if self._out not in self._ready.get_map() or not self._read():
                break

    def said(self) -> str:
        return bytes(self._kept).decode("utf-8", "replace")

    def _exchange(self, patience_s: float) -> None:
        for key, _ in self._ready.select(patience_s):
            if key.fd == self._in:
                self._write()
            else:
                self._read()

    def _write(self) -> None:
        """Hand over what it takes; one that does not read is judged by its exit code."""
        try:
            self._left = self._left[os.write(self._in, self._left[:_CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._left = self._left[:0]
        if not self._left:
            self._ready.unregister(self._in)
            if self._process.stdin is not None:
                self._process.stdin.close()

    def _read(self) -> bool:
        """Whether there was something."""
        try:
            chunk = os.read(self._out, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._ready.unregister(self._out)
        self._kept += chunk
        del self._kept[:-_KEPT]
        return bool(chunk)
