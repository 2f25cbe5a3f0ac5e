"""Wakeups in processes of their own, for `tick` and `serve`: none can delay or stop another."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

from assistants.models import Wakeup
from runs.own_program import own_program


class Processes:
    """Those that were started here and still run. They outlive a parent that is killed."""

    def __init__(self) -> None:
        self._going: dict[int, subprocess.Popen[bytes]] = {}

    def __len__(self) -> int:
        return len(self._going)

    def start(self, wakeup: Wakeup) -> None:
        """Have one executed. The claim is the new process's own."""
        self._going[wakeup.pk] = subprocess.Popen(
            own_program("wakeup", str(wakeup.pk)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            env=os.environ,
        )

    def ended(self) -> dict[int, int]:
        """The wakeups whose processes have ended since the last look, with their exit codes."""
        codes = {pk: process.poll() for pk, process in self._going.items()}
        found = {pk: code for pk, code in codes.items() if code is not None}
        for pk in found:
            del self._going[pk]
        return found

    def tell(self, number: signal.Signals) -> None:
        """Pass a signal on: the terminal's Ctrl-C does not reach them."""
        for process in self._going.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)
