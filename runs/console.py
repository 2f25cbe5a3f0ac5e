"""Where a run says what it does: a terminal, a log, or nowhere."""

from __future__ import annotations

import sys
from typing import IO, Protocol

from runs.agents.base import Trace
from runs.printing import print_line
from runs.visible import visible

MARKS = {"text": ".", "tool": ">", "problem": "!", "note": "-"}
COLOURS = {"text": "", "tool": "36", "problem": "33", "note": "2"}
LINE = 160


class Console(Protocol):
    def progress(self, text: str) -> None:
        """One line of what sanduk itself does."""

    def warn(self, text: str) -> None:
        """One line that a person must see, however quiet the run is."""

    def trace(self, trace: Trace) -> None:
        """One line of what the agent does. Its text is hostile."""


class Silent:
    """For the worker: everything is in the rows anyway."""

    def progress(self, text: str) -> None:
        pass

    def warn(self, text: str) -> None:
        pass

    def trace(self, trace: Trace) -> None:
        pass


class Terminal:
    """Trace on stdout, progress on stderr, colours only where a terminal reads.

    Args:
        quiet: no trace, no progress; problems and the ending still show.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        out: IO[str] | None = None,
        err: IO[str] | None = None,
        trace_to_stderr: bool = False,
    ) -> None:
        self._quiet = quiet
        self._err = err or sys.stderr
        self._out = self._err if trace_to_stderr else (out or sys.stdout)

    def progress(self, text: str) -> None:
        if not self._quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        print_line(f"sanduk: {visible(text)}", self._err)

    def trace(self, trace: Trace) -> None:
        if self._quiet:
            return
        text = trace.text.strip()
        if not text:
            return
        if trace.kind == "note" and trace.detail:  # the rest is in `sanduk show` and on the site
            text += f": {trace.detail.strip().partition(chr(10))[0]}"
        text = visible(text, limit=LINE)
        line = f"  {MARKS[trace.kind]} {text}"
        colour = COLOURS[trace.kind]
        if colour and self._out.isatty():
            line = f"\x1b[{colour}m{line}\x1b[0m"
        print_line(line, self._out)


class BesideShell(Terminal):
    """Lines on a terminal that a shell in a container may have made raw meanwhile."""

    def warn(self, text: str) -> None:
        print_line(f"\rsanduk: {visible(text)}", self._err, end="\r\n")
