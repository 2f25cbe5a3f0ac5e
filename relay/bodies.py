"""The body log: what was sent to the provider, call by call, and what became of each.

A call is `0007.json`, the bytes as they went out, and `0007.outcome.json`, its record; `calls.log`
has a line per call to read through. The directory belongs to nobody but the caller and lies
outside of every mount: whoever chooses it sees to that. Writing happens in a thread and never
holds a call up; when the disk is full the log stops, and the calls go on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from relay.protocols.reading import count, name
from relay.records import CallRecord

DIGESTS = "calls.log"
REMOVED = "removed.log"  # calls that retention took out, and when
MIB = 1024 * 1024
MAX_WAITING_BYTES = 128 * MIB  # bodies not yet written; those beyond are left out, and counted
_FILE = re.compile(r"([0-9]{4,12})(\.outcome)?\.json")
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MORE = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_log = logging.getLogger(__name__)
_SHOWN = re.compile(r"[^!-~]")


class BodyLog:
    """The log of one run. Close it with `close`.

    Args:
        directory: made 0700 if it is missing; its parent must exist.
        max_total_bytes: of all files together; the oldest calls make room.
        max_age_s: files of earlier calls that are older go when the log is opened.
        on_digest: is handed each call's line, in the log's own thread.
        on_stop: is handed the reason when the log stops, in the log's own thread.

    Raises:
        OSError: the directory cannot be made or opened, or is a symbolic link.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        max_total_bytes: int = 1024 * MIB,
        max_age_s: float = 30 * 86400.0,
        on_digest: Callable[[str], None] | None = None,
        on_stop: Callable[[str], None] | None = None,
    ) -> None:
        path = Path(directory)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        self._directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self.stopped = ""  # why it stopped; empty while it runs
        self.left_out = 0  # calls that are not in it
        self._max_total_bytes = max_total_bytes
        self._on_digest = on_digest
        self._on_stop = on_stop
        self._closed = False
        self._lock = threading.Lock()
        self._waiting = 0
        self._kept: deque[tuple[str, int]] = deque()  # names and sizes, the oldest first
        self._total = 0
        self._thread = ThreadPoolExecutor(1, "body-log")
        self._thread.submit(self._guarded, self._take_stock, max_age_s)

    def request(self, sequence: int, body: bytes, path: str = "") -> None:
        """Log what is sent upstream.

        Args:
            path: the request's, for protocols whose model stands there.
        """
        with self._lock:
            if self.stopped or self._closed or self._waiting + len(body) > MAX_WAITING_BYTES:
                self.left_out += 1
                return
            self._waiting += len(body)
        self._thread.submit(self._guarded, self._write_body, sequence, body, path)

    def outcome(self, record: CallRecord) -> None:
        """Log what became of a call. The record is read at once and may change afterwards."""
        if not self.stopped and not self._closed:
            text = json.dumps(dataclasses.asdict(record), indent=1).encode()
            self._thread.submit(
                self._guarded, self._write_file, f"{record.sequence:04d}.outcome.json", text
            )

    def close(self) -> None:
        """Wait for what is still to be written, then close. Not for the event loop's own thread."""
        if self._closed:
            return
        self._closed = True
        self._thread.shutdown(wait=True)
        os.close(self._directory)

    # -- in the thread -----------------------------------------------------------------------------
    def _guarded(self, write: Callable[..., None], *arguments: Any) -> None:
        if self.stopped:
            return
        try:
            self._until_full(write, *arguments)
        except Exception:  # noqa: BLE001
            _log.exception("a call could not be put into the body log")

    def _until_full(self, write: Callable[..., None], *arguments: Any) -> None:
        try:
            write(*arguments)
        except FileExistsError:
            with self._lock:
                self.left_out += 1  # a call of that number is there already; it is not overwritten
        except OSError as error:
            self.stopped = f"the body log stopped: {os.strerror(error.errno or 0)}"
            if self._on_stop is not None:
                self._on_stop(self.stopped)

    def _write_body(self, sequence: int, body: bytes, path: str) -> None:
        with self._lock:
            self._waiting -= len(body)
        self._write_file(f"{sequence:04d}.json", body)
        line = digest(sequence, body, path)
        descriptor = os.open(DIGESTS, _MORE, 0o600, dir_fd=self._directory)
        try:
            _write_all(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)
        if self._on_digest is not None:
            self._on_digest(line)

    def _write_file(self, file: str, content: bytes) -> None:
        descriptor = os.open(file, _NEW, 0o600, dir_fd=self._directory)
        try:
            _write_all(descriptor, content)
        except OSError:
            os.unlink(file, dir_fd=self._directory)  # half a body would be taken for a whole one
            raise
        finally:
            os.close(descriptor)
        self._kept.append((file, len(content)))
        self._total += len(content)
        self._make_room()

    def _take_stock(self, max_age_s: float) -> None:
        """Remove what is too old, and count what is there."""
        oldest = time.time() - max_age_s
        found = []
        with os.scandir(self._directory) as entries:
            for entry in entries:
                if not _FILE.fullmatch(entry.name):
                    continue
                status = entry.stat(follow_symlinks=False)
                if status.st_mtime < oldest:
                    os.unlink(entry.name, dir_fd=self._directory)
                else:
                    found.append((status.st_mtime, entry.name, status.st_size))
        for _, file, size in sorted(found):
            self._kept.append((file, size))
            self._total += size
        self._make_room()

    def _make_room(self) -> None:
        # The latest file stays, whatever its size: it is the one somebody waits for.
        while self._total > self._max_total_bytes and len(self._kept) > 1:
            file, size = self._kept.popleft()
            self._total -= size
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file, dir_fd=self._directory)


def digest(sequence: int, body: bytes, path: str = "") -> str:
    """One line about a request: size, model, limit, messages, tools, whether it streams.

    Whatever cannot be read is left out. Only visible ASCII of the model's name is shown.
    """
    words = [f"{sequence:04d}", f"{len(body) / 1024:.1f} KiB"]
    try:
        words += _digest_words(_body.decode(body), path)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        words.append("no JSON object")
    return " ".join(words)


class _Settings(msgspec.Struct):
    limit: Any = msgspec.field(default=None, name="maxOutputTokens")


class _Tool(msgspec.Struct):
    declared: list[msgspec.Raw] | None = msgspec.field(default=None, name="functionDeclarations")


class _Body(msgspec.Struct):
    model: Any = None
    max_tokens: Any = None
    max_completion_tokens: Any = None
    max_output_tokens: Any = None
    stream: Any = None
    messages: msgspec.Raw = msgspec.Raw(b"")
    input: msgspec.Raw = msgspec.Raw(b"")
    contents: msgspec.Raw = msgspec.Raw(b"")
    tools: msgspec.Raw = msgspec.Raw(b"")
    settings: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="generationConfig")


_body = msgspec.json.Decoder(_Body)
_settings = msgspec.json.Decoder(_Settings)
_items = msgspec.json.Decoder(list[msgspec.Raw])
_tool = msgspec.json.Decoder(_Tool)
_PATH = re.compile(r".*/models/([^/:]+):(\w+)")


def _digest_words(body: _Body, path: str) -> Iterator[str]:
    in_path = _PATH.fullmatch(path)
    model = name(body.model) or (in_path[1] if in_path else "")
    if model:
        yield f"model={_SHOWN.sub('?', model)[:100]}"
    limits = [body.max_tokens, body.max_completion_tokens, body.max_output_tokens]
    if _starts(body.settings, b"{"):
        limits.append(_settings.decode(body.settings).limit)
    limit = next((found for found in map(count, limits) if found is not None), None)
    if limit is not None:
        yield f"max_tokens={limit}"
    for raw in (body.messages, body.input, body.contents):
        if _starts(raw, b"["):
            yield f"messages={len(_items.decode(raw))}"
            break
    if _starts(body.tools, b"["):
        yield f"tools={sum(map(_count, _items.decode(body.tools)))}"
    streams = body.stream is True or (in_path is not None and in_path[2].startswith("stream"))
    yield f"stream={'yes' if streams else 'no'}"


def _starts(raw: msgspec.Raw, first: bytes) -> bool:
    return bytes(memoryview(raw)[:1]) == first


def _count(tool: msgspec.Raw) -> int:
    """Google's clients put all their functions into one tool."""
    declared = _tool.decode(tool).declared if _starts(tool, b"{") else None
    return 1 if declared is None else len(declared)


def read_body(directory: str | os.PathLike[str], sequence: int) -> bytes | None:
    """What a call sent, or None when the log does not hold it."""
    return _read(Path(directory) / f"{sequence:04d}.json")


def read_outcome(directory: str | os.PathLike[str], sequence: int) -> dict[str, Any] | None:
    """The record of a call, or None when the log does not hold it."""
    text = _read(Path(directory) / f"{sequence:04d}.outcome.json")
    value = json.loads(text) if text is not None else None
    return value if isinstance(value, dict) else None


def read_digests(directory: str | os.PathLike[str]) -> dict[int, str]:
    """What the line of each call says, by its number, as far as the log holds them."""
    text = (_read(Path(directory) / DIGESTS) or b"").decode("ascii", "replace")
    found = (line.partition(" ") for line in text.splitlines())
    return {int(number): told for number, _, told in found if number.isdigit()}


@dataclasses.dataclass(frozen=True, slots=True)
class Kept:
    """One call in a log that nobody writes to any more: its body and its outcome together."""

    sequence: int
    size: int  # bytes
    written_at: float  # epoch seconds


def kept_calls(directory: str | os.PathLike[str]) -> list[Kept]:
    """What a log holds, in no order. Raises OSError when it cannot be read; none is no error."""
    found: dict[int, Kept] = {}
    with _opened(directory) as descriptor:
        if descriptor is None:
            return []
        with os.scandir(descriptor) as entries:
            for entry in entries:
                if match := _FILE.fullmatch(entry.name):
                    facts, sequence = entry.stat(follow_symlinks=False), int(match[1])
                    other = found.get(sequence, Kept(sequence, 0, 0.0))
                    latest = max(other.written_at, facts.st_mtime)
                    found[sequence] = Kept(sequence, other.size + facts.st_size, latest)
    return list(found.values())


def remove_calls(directory: str | os.PathLike[str], sequences: Iterable[int], on: str) -> None:
    """Take calls out of a log, and note the day `on` which. Raises OSError."""
    with _opened(directory) as descriptor:
        if descriptor is None:
            return
        gone = list(sequences)
        for sequence in gone:
            for file in (f"{sequence:04d}.json", f"{sequence:04d}.outcome.json"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(file, dir_fd=descriptor)
        # after the removal: a full disk has room for it only then
        noted = os.open(REMOVED, _MORE, 0o600, dir_fd=descriptor)
        try:
            _write_all(noted, "".join(f"{sequence:04d} {on}\n" for sequence in gone).encode())
        finally:
            os.close(noted)


def removed_on(directory: str | os.PathLike[str], sequence: int) -> str:
    """The day a call was taken out of a log, "" when it was not."""
    text = (_read(Path(directory) / REMOVED) or b"").decode("ascii", "replace")
    found = (line.partition(" ") for line in text.splitlines())
    return next((day for number, _, day in found if number == f"{sequence:04d}"), "")


@contextlib.contextmanager
def _opened(directory: str | os.PathLike[str]) -> Iterator[int | None]:
    """A descriptor of a directory that is no link; None when there is none."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
