"""Reading what came back goes on when the process is told to stop; told twice, it is dropped."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

_SAID = b"sanduk: reading what was made, which then waits in review; once more drops it\n"


@contextlib.contextmanager
def put_off() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until the block is over: what it reads was paid for, or typed.

    What they do else, they do after the block when they came once, and in the midst of it when
    twice. A thread that is not the main one hears no signals, and is not changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    before = {each: usual for each, usual in before.items() if usual != signal.SIG_IGN}

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        if len(heard) > 1:
            _stop(number, before[signal.Signals(number)])
        with contextlib.suppress(OSError):  # whoever read it may be gone
            os.write(2, _SAID)  # a print in the midst of another would raise

    for number in before:
        signal.signal(number, hear)
    try:
        yield
    finally:
        for number, usual in before.items():
            signal.signal(number, usual)
    if heard:
        _stop(heard[0], before[signal.Signals(heard[0])])


def _stop(number: int, usual: Any) -> None:
    if callable(usual):
        usual(number, None)
    else:
        raise SystemExit(128 + number)
