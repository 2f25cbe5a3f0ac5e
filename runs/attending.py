"""A person at a shell in a run's container, instead of an agent whose output is read."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import termios
from collections.abc import Iterator
from typing import Any

from runs.engines.base import ContainerState
from runs.following import Following


class Attending(Following):
    """What is typed and printed goes past us, unread and unrecorded: only the end is followed.

    A container that outlives its client has nobody at it any more, so it is ended.
    """

    def __init__(self, *given: Any, tty: bool, **named: Any) -> None:
        super().__init__(*given, **named)
        self._tty = tty

    async def to_the_end(self, container: str) -> ContainerState | None:
        with _terminal_kept():
            process = await self._engine.start_interactive(container, tty=self._tty)
            self.started = True
            try:
                await process.wait()
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        state, _ = await asyncio.gather(self.state(container), self._on_silence())
        if state is None or state.status != "running":
            return state
        await self._engine.stop(container, grace_s=0)
        return await self.state(container)


@contextlib.contextmanager
def _terminal_kept() -> Iterator[None]:
    """Leave the terminal as it was, whatever becomes of the client that makes it raw."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # it may be gone
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
