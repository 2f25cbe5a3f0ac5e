"""What a container prints: cut into lines, capped, logged, and given to the agent's reader."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec

from runs.agents.base import Reader, Result, Trace, TraceKind

LINE_MAX = 4 * 2**20
LOG_MAX = 16 * 2**20
CUT = b"\n[cut here by sanduk: the output went on]\n"


class Lines:
    """Cuts a byte stream into lines, never holding more than one capped line."""

    def __init__(self, limit: int = LINE_MAX) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._dropping = False

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """Whole lines without their ends, and whether the line had to be cut."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            yield from self._whole(data[start:end])
            start = end + 1
        self._keep(data[start:])

    def rest(self) -> Iterator[tuple[bytes, bool]]:
        """What stands after the last line end, once the stream is over."""
        if self._rest or self._dropping:
            yield from self._whole(b"")

    def _keep(self, piece: bytes) -> None:
        room = self._limit - len(self._rest)
        if len(piece) > room:
            self._dropping = True
        self._rest += piece[: max(room, 0)]

    def _whole(self, piece: bytes) -> Iterator[tuple[bytes, bool]]:
        self._keep(piece)
        line, cut = bytes(self._rest), self._dropping
        self._rest.clear()
        self._dropping = False
        yield line, cut


class OutputLog:
    """The raw output on disk, capped. A full disk stops the log, not the run."""

    def __init__(self, path: Path, limit: int = LOG_MAX) -> None:
        self._left = limit
        self.failure = ""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(path, flags, 0o600)

    def write(self, data: bytes) -> None:
        if self._left <= 0 or self.failure:
            return
        piece = data[: self._left]
        self._left -= len(piece)
        try:
            os.write(self._file, piece + (CUT if not self._left else b""))
        except OSError as exc:
            self.failure = exc.strerror or "write failed"

    def close(self) -> None:
        os.close(self._file)


class Listener:
    """Gives lines to a reader and takes trace lines back; nothing a container prints can raise."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def hear(self, line: bytes, *, cut: bool) -> list[Trace]:
        """The trace lines that one line of output amounts to."""
        if cut:
            shown = line[:200].decode("utf-8", "replace")
            return [Trace("note", f"a line of more than {LINE_MAX:,} bytes was not read: {shown}")]
        try:
            record = _record(line)
            if record is not None:
                return _sound(self._reader.record(record))
            text = line.decode("utf-8", "replace")
            return _sound(self._reader.line(text)) if text.strip() else []
        except Exception as exc:  # noqa: BLE001 - a handler's bug must not orphan a container
            return [Trace("problem", f"the agent's reader failed on a line: {type(exc).__name__}")]

    def take(self, data: bytes) -> None:
        """A piece of output as it came, before it is cut into lines."""
        with contextlib.suppress(Exception):  # as in `hear`: its lines show what is wrong
            self._reader.raw(data)

    def result(self) -> Result | None:
        try:
            found = self._reader.result()
            if found is not None and not (
                isinstance(found, Result) and isinstance(found.text + found.error, str)
            ):
                raise TypeError("not a result")
        except Exception as exc:  # noqa: BLE001 - as above
            return Result(ok=False, error=f"the agent's reader failed: {type(exc).__name__}")
        return found


def _sound(traces: Iterable[Trace]) -> list[Trace]:
    """The traces, once each is known to be one: a handler may be anybody's."""
    found = list(traces)
    for trace in found:
        texts = (trace.text, trace.detail)
        if trace.kind not in get_args(TraceKind) or not all(isinstance(t, str) for t in texts):
            raise TypeError("not a trace")
    return found


def _record(line: bytes) -> dict[str, Any] | None:
    if line.lstrip()[:1] != b"{":
        return None
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
