"""A command of this host's people in an agent's box: its exit status says how it went.

It is no agent that a person would choose: `changes` tests with it. It runs in the image of any
agent, in the place of that agent's own command, and is told of no model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, ClassVar

from relay import Provider
from runs.agents.base import Agent, Launch, Reader, Request, Result, Trace

TRACED = 2000  # lines; what is kept whole is the end
# both streams as one, in the order they were written in
_ONE_STREAM = 'exec "$@" 2>&1'


class Ending:
    """The end of what was printed, and how much it was in all.

    Args:
        limit: bytes that are kept.
    """

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._limit = limit
        self._pieces: deque[bytes] = deque()
        self._kept = 0

    def add(self, piece: bytes) -> None:
        self.total += len(piece)
        self._pieces.append(piece[-self._limit :])
        self._kept += len(self._pieces[-1])
        while self._kept - len(self._pieces[0]) >= self._limit:
            self._kept -= len(self._pieces.popleft())

    def read(self) -> bytes:
        return b"".join(self._pieces)[-self._limit :]


class Command(Agent):
    """Args:
    ending: gets everything that is printed.
    """

    name = "command"
    recipe = "pi"
    protocols = ()
    calls_model = False
    is_command: ClassVar[bool] = True

    def __init__(self, ending: Ending | None = None) -> None:
        self._ending = ending

    def launch(
        self, request: Request, provider: Provider, *, task: str, root: str, credential: str
    ) -> Launch:
        return Launch(("/bin/sh", "-c", _ONE_STREAM, "sh", "/bin/sh", "-c", task))

    def reader(self) -> CommandReader:
        return CommandReader(self._ending)


class CommandReader(Reader):
    """Nothing that is printed counts as a record: a command may print anything."""

    def __init__(self, ending: Ending | None) -> None:
        self._ending = ending
        self._traced = 0

    def raw(self, data: bytes) -> None:
        if self._ending is not None:
            self._ending.add(data)

    def record(self, record: dict[str, Any]) -> Iterable[Trace]:
        return ()

    def line(self, text: str) -> Iterable[Trace]:
        self._traced += 1
        if self._traced > TRACED:
            return ()
        if self._traced == TRACED:
            return [Trace("note", f"the trace ends here, after {TRACED:,} lines")]
        return [Trace("text", text)]

    def result(self) -> Result | None:
        return None
