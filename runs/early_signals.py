"""Signals that come before a run listens for them.

For a Ctrl-C Python raises KeyboardInterrupt wherever it happens to be. In a finalizer, or in the
callback of a weak reference, of which loading a module has several, it drops the exception and
goes on; then nobody would ever hear of the Ctrl-C. What the kernel delivered stands in a pipe,
whatever became of the exception.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading

_pipe: tuple[int, int] | None = None  # to read from and to write to; None: nothing is kept


def keep() -> None:
    """From now on keep the signals that Python has a handler for, until `kept` is asked."""
    global _pipe
    if _pipe is not None or threading.current_thread() is not threading.main_thread():
        return
    _pipe = os.pipe()
    for end in _pipe:
        os.set_blocking(end, False)
    signal.set_wakeup_fd(_pipe[1], warn_on_full_buffer=False)
    os.register_at_fork(after_in_child=_let_go)  # a child's signals are its own


def kept() -> list[int]:
    """Each kind of signal that came, oldest first; later ones are kept no more."""
    found = b""
    if _pipe is not None:
        with contextlib.suppress(BlockingIOError):
            found = os.read(_pipe[0], 1024)
    _let_go()
    return list(dict.fromkeys(found))


def _let_go() -> None:
    global _pipe
    if _pipe is None:
        return
    (reading, writing), _pipe = _pipe, None
    with contextlib.suppress(ValueError):  # not in the main thread
        current = signal.set_wakeup_fd(-1)
        if current not in (writing, -1):
            signal.set_wakeup_fd(current)  # an event loop's
    os.close(reading)
    os.close(writing)
