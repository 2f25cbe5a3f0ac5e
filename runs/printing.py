"""Lines for somebody who may have left: a closed pipe or a full disk never ends a run.

A line that could not be written is remembered, so that a command whose output was lost says so
with its exit code. A reader that went away wanted no more, which is no failure.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import IO

_lost: dict[str, str] = {}
_left: set[int] = set()


def print_line(text: str, stream: IO[str] | None, *, end: str = "\n") -> None:
    """Write one line at once; `stream` is None where the command was started without one.

    What is hostile in `text` must have gone through `visible`.
    """
    if stream is None or stream.closed:
        return
    try:
        stream.write(text + end)
        stream.flush()
    except BrokenPipeError:
        _left.add(id(stream))
        _to_nowhere(stream)
    except OSError as exc:
        _lost.setdefault(_name(stream), exc.strerror or str(exc))
        _to_nowhere(stream)


def reader_left(stream: IO[str]) -> bool:
    """Whether nobody reads this stream any more: what only prints may stop."""
    return id(stream) in _left


def lost_output() -> str:
    """Why what was printed on standard output did not arrive; "" when it did."""
    return _lost.get("stdout", "")


def _name(stream: IO[str]) -> str:
    return "stdout" if stream is sys.stdout else "stderr"


def _to_nowhere(stream: IO[str]) -> None:
    """Let what is still in the buffer, and all that follows, go where it troubles nobody."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)
        stream.flush()
