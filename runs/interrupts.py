"""Signals of the process that executes a run: each becomes a request to end it, nothing more.

`loop.add_signal_handler` leaves SIGTERM at its default action once the loop is closed, so the
handlers are ordinary ones, installed before anything is taken and restored after all is given back.
What came before them and went unheard is told too. What this process was started not to hear
(`nohup`, a shell's background) it does not hear.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from runs import early_signals
from runs.outcome import Halt

REASONS: dict[int, tuple[Halt, str]] = {
    signal.SIGINT: ("cancelled", "stopped with Ctrl-C"),
    signal.SIGTERM: ("interrupted", "this process was told to stop (SIGTERM)"),
    signal.SIGHUP: ("interrupted", "the terminal went away (SIGHUP)"),
}
WITHOUT_CLUSTER: tuple[Halt, str] = (
    "interrupted",
    "the cluster that executed it is gone: it was killed, or ended by an error",
)


def reason_of(number: int) -> tuple[Halt, str]:
    """What a signal asks for, and why.

    A worker of the queue is told to stop by SIGTERM, also when its cluster's main process is dead;
    that one leads the group of processes.
    """
    if number == signal.SIGTERM and os.environ.get("Q_CLUSTER_NAME") and _leader_is_gone():
        return WITHOUT_CLUSTER
    return REASONS[number]


def _leader_is_gone() -> bool:
    try:
        os.kill(os.getpgrp(), 0)
    except ProcessLookupError:
        return True
    return False


def is_ignored(number: int) -> bool:
    """Whether this process was started with SIGHUP or SIGINT ignored: then it stays so.

    That is how nohup(1) keeps a command alive when its terminal goes, and how a shell keeps the
    terminal's Ctrl-C from what it put in the background.
    """
    heeded = number not in (signal.SIGHUP, signal.SIGINT)
    return not heeded and signal.getsignal(number) == signal.SIG_IGN


class Interrupts:
    """Catches the signals for the length of a block and hands them to whoever listens."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._waiting: list[int] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._halt: Callable[[Halt, str], None] | None = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in REASONS:
                if not is_ignored(number):
                    self._before[number] = signal.signal(number, self._caught)
            unheard = (number for number in early_signals.kept() if number in REASONS)
            self._waiting += [number for number in unheard if number not in self._waiting]
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def listen(self, halt: Callable[[Halt, str], None]) -> None:
        """From now on `halt` is called in the running loop; what came before is told at once."""
        self._loop, self._halt = asyncio.get_running_loop(), halt
        waiting, self._waiting = self._waiting, []
        for number in waiting:
            halt(*reason_of(number))

    def _caught(self, number: int, frame: FrameType | None) -> None:
        if self._loop is None or self._halt is None or self._loop.is_closed():
            self._waiting.append(number)
            return
        self._loop.call_soon_threadsafe(self._halt, *reason_of(number))
