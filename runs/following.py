"""Reading a container's output to its end, and asking the engine how it stands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from runs import clock
from runs.agents.base import Trace
from runs.engines.base import ContainerState, Engine, EngineError
from runs.hidden import Hiding
from runs.link import pipes
from runs.stream import Lines, Listener, OutputLog

PIECE = 1 << 16
ERROR_LINE_MAX = 4096
UNANSWERED_S = 60.0  # how long an engine may be silent before a run is given up


class Following:
    """Args:
    on_trace: gets each trace line.
    on_error_line: gets each line of standard error.
    on_silence: awaited beside each question that follows the end of the output.
    hurry: once set, an engine that does not answer is not waited for.
    hiding: takes keys out of everything that is printed.
    """

    def __init__(
        self,
        engine: Engine,
        listener: Listener,
        log: OutputLog,
        *,
        on_trace: Callable[[Trace], None],
        on_error_line: Callable[[str], None],
        on_silence: Callable[[], Awaitable[None]],
        hurry: asyncio.Event,
        hiding: Hiding,
    ) -> None:
        self.last_seen = clock.monotonic()
        self.started = False
        self.last_error = ""  # the last line of standard error, the engine client's included
        self._engine, self._listener, self._log = engine, listener, log
        self._on_trace, self._on_error_line = on_trace, on_error_line
        self._on_silence = on_silence
        self._hurry = hurry
        self._hiding = hiding

    async def to_the_end(self, container: str) -> ContainerState | None:
        """Start it and read until the engine says it has ended.

        The client is only a pipe: when it breaks, another one is attached and the gap is noted.
        Returns the state as `inspect` gives it, None when the container is gone. Raises
        EngineError when the engine stays silent.
        """
        process = await self._engine.start_attached(container)
        self.started = True
        try:
            while True:
                out, err = pipes(process)
                await asyncio.gather(self._read(out), self._read_errors(err))
                await process.wait()
                state, _ = await asyncio.gather(self.state(container), self._on_silence())
                if state is None or state.status != "running":
                    return state
                note = "the engine's client ended early; output may be missing here"
                self._on_trace(Trace("note", note))
                process = await self._engine.reattach(container)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def state(self, container: str) -> ContainerState | None:
        """Ask the engine, patiently: a daemon that restarts answers again."""
        since = clock.monotonic()
        while True:
            try:
                return await self._engine.inspect(container)
            except EngineError:
                if clock.monotonic() - since > UNANSWERED_S or self._hurry.is_set():
                    raise
                await asyncio.sleep(1)

    async def _read(self, stream: asyncio.StreamReader) -> None:
        lines, hiding = Lines(), self._hiding.stream()
        async for data in self._pieces(stream, hiding):
            self._log.write(data)
            self._listener.take(data)
            for line, cut in lines.feed(data):
                self._hear(line, cut=cut)
        for line, cut in lines.rest():
            self._hear(line, cut=cut)

    def _hear(self, line: bytes, *, cut: bool) -> None:
        for trace in self._listener.hear(line, cut=cut):
            self._on_trace(trace)

    async def _pieces(self, stream: asyncio.StreamReader, hiding: Hiding) -> AsyncIterator[bytes]:
        """What is printed, as it comes, without keys."""
        while data := await stream.read(PIECE):
            self.last_seen = clock.monotonic()
            yield hiding.feed(data)
            self._hiding.found |= hiding.found
        yield hiding.rest()

    async def _read_errors(self, stream: asyncio.StreamReader) -> None:
        lines, hiding = Lines(limit=ERROR_LINE_MAX), self._hiding.stream()
        async for data in self._pieces(stream, hiding):
            for line, _ in lines.feed(data):
                self._note_error(line)
        for line, _ in lines.rest():
            self._note_error(line)

    def _note_error(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").strip()
        if text:
            self.last_error = text
            self._on_error_line(text)
