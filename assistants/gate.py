"""The gate script: a program of the operator's own that says whether a wakeup is worth a run."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from runs import clock, credentials, keys, providers

OUTPUT_MAX = 16 * 1024  # bytes kept; what is more is read and thrown away
_LOOK_S = 0.2
_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)S?(_FILE)?\Z", re.IGNORECASE)


class BrokenGate(Exception):
    """The gate could not be asked. The text says why, in one line."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Args:
    passes: it exited with 0.
    code: its exit code; negative for a signal.
    output: what it printed on both streams, cut. Hostile.
    """

    passes: bool
    code: int
    output: str


def ask(directory: Path, gate: str, *, timeout_s: float, name: str) -> Answer:
    """Run the gate in its directory, without our keys, and with what it started ended behind it.

    Args:
        gate: relative to `directory`, and never below its workspace, where the agent writes.
        name: the assistant's, for its environment.

    Raises BrokenGate when it cannot be run or does not end in time.
    """
    program = _program(directory, gate)
    try:
        process = subprocess.Popen(
            [str(program)],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=without_keys() | {"SANDUK_ASSISTANT": name},
        )
    except OSError as exc:
        raise BrokenGate(f"the gate {gate} cannot be run: {exc.strerror}") from None
    try:
        output, ended = _followed(process, timeout_s)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        if process.stdout is not None:
            process.stdout.close()
    if not ended:
        raise BrokenGate(f"the gate {gate} did not end within {timeout_s:g} s")
    return Answer(code == 0, code, output)


def _program(directory: Path, gate: str) -> Path:
    home = directory.resolve()
    program = (home / gate).resolve()
    if not program.is_relative_to(home):
        raise BrokenGate(f"the gate {gate} is not in the assistant's directory")
    if program.is_relative_to((home / "workspace").resolve()):
        raise BrokenGate(f"the gate {gate} lies in the workspace, where the agent can write it")
    try:
        mode = program.stat().st_mode
    except OSError as exc:
        raise BrokenGate(f"the gate {gate} cannot be run: {exc.strerror}") from None
    if not stat.S_ISREG(mode) or not os.access(program, os.X_OK):
        raise BrokenGate(f"the gate {gate} is no executable file; try: chmod +x {program}")
    return program


def _followed(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[str, bool]:
    """What it prints until it ends, and whether it ended in time.

    A program it left behind may hold the pipe open: its own end counts, not the pipe's.
    """
    assert process.stdout is not None  # noqa: S101 - it was asked for
    kept = bytearray()
    deadline = clock.monotonic() + timeout_s
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ)
        is_open = True
        while process.poll() is None:
            if clock.monotonic() >= deadline:
                return _text(kept), False
            if is_open:
                is_open = _read(process, waiting, kept, _LOOK_S)
            else:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_LOOK_S)
        while is_open and len(kept) <= OUTPUT_MAX and waiting.select(0):
            is_open = _read(process, waiting, kept, 0)
    return _text(kept), True


def _read(
    process: subprocess.Popen[bytes],
    waiting: selectors.BaseSelector,
    kept: bytearray,
    patience_s: float,
) -> bool:
    """Take what is there. False at the end of the pipe."""
    assert process.stdout is not None  # noqa: S101 - it was asked for
    if not waiting.select(patience_s):
        return True
    piece = os.read(process.stdout.fileno(), 1 << 16)
    if not piece:
        waiting.unregister(process.stdout)
        return False
    kept += piece[: max(OUTPUT_MAX + 1 - len(kept), 0)]
    return True


def _text(kept: bytearray) -> str:
    text = bytes(kept[:OUTPUT_MAX]).decode("utf-8", "replace").replace("\x00", "␀")
    return f"{text}\n[cut here by sanduk]" if len(kept) > OUTPUT_MAX else text


def without_keys() -> dict[str, str]:
    """This process's environment without what is, or names, or holds a secret."""
    named = {each.key_env for each in providers.usable()[0].values()} | set(credentials.stored())
    named |= {"DATABASE_URL", *(f"{name}_FILE" for name in named)}
    held = keys.held_keys()
    return {
        name: value
        for name, value in os.environ.items()
        if name not in named and not _SECRET.search(name) and not any(key in value for key in held)
    }
