"""Reading a workspace into a store: every content is hashed, every time.

Nothing is taken for unchanged because of its times. A file's ctime would be no proof: it has the
grain of the kernel's tick, it follows the host's clock when that is set back, and writes through a
shared mapping move it only when the page is first dirtied.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from assistants.memory.manifest import Entry, Manifest
from assistants.memory.store import PIECE, Incoming, Store
from runs import tree
from runs.agents.base import REPORT_NAME
from runs.visible import visible_name

MB = 10**6
MAX_DEPTH = 256  # directories in one another: each is an open descriptor while it is read
MAX_ENTRIES = 500_000
TOLD = 200  # entries that are left out, each with its reason; the rest are counted
_PERMISSIONS = 0o1777
_SET_ID = 0o6000
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that a snapshot does not hold as it stands in the workspace.

    Args:
        path: as it may be shown.
        why: in words.
        is_lost: it has content that no restored workspace will hold.
    """

    path: str
    why: str
    is_lost: bool = True

    def stored(self) -> dict[str, Any]:
        return {"path": self.path, "why": self.why, "lost": self.is_lost}


@dataclass(slots=True)
class Captured:
    """A workspace as it was read."""

    manifest: Manifest = field(default_factory=Manifest)
    left_out: list[LeftOut] = field(default_factory=list)

    @property
    def loses(self) -> bool:
        """Whether some of its content would be gone after restoring it."""
        return any(each.is_lost for each in self.left_out)


def capture(
    workspace: str, store: Store, *, max_bytes: int, is_kept_report: Callable[[str], bool]
) -> Captured:
    """Read everything below `workspace` and keep its contents and its list in `store`.

    Args:
        workspace: a real path; one that is missing is an empty memory.
        max_bytes: the most that all files together may hold; what is over is left out.
        is_kept_report: told the sha256 of a REPORT.md: whether the next run removes that report
            before its agent starts, since it is stored with its own run. It is no memory then.

    Raises:
        OSError: the workspace is no directory, or the store cannot be written.
    """
    with store.incoming() as incoming:
        reading = _Reading(incoming, max_bytes, is_kept_report)
        try:
            with tree.opened(workspace) as root:
                reading.directory(root, "", 0)
        except FileNotFoundError:
            if os.path.lexists(workspace):
                raise
        incoming.keep()
    captured = reading.captured()
    store.save(captured.manifest)
    return captured


class _Reading:
    def __init__(
        self, incoming: Incoming, max_bytes: int, is_kept_report: Callable[[str], bool]
    ) -> None:
        self._incoming = incoming
        self._max = self._room = max_bytes
        self._is_kept_report = is_kept_report
        self._entries: list[Entry] = []
        self._left_out: list[LeftOut] = []
        self._more = 0
        self._more_lost = False

    def captured(self) -> Captured:
        left_out = list(self._left_out)
        if self._more:
            left_out.append(LeftOut("", f"and {self._more:,} more", self._more_lost))
        return Captured(Manifest.of(self._entries), left_out)

    def directory(self, descriptor: int, prefix: str, depth: int) -> None:
        with os.scandir(descriptor) as listing:
            some = itertools.islice(listing, MAX_ENTRIES + 1)
            found = sorted(some, key=lambda each: each.name)
        for each in found:
            path = prefix + each.name
            if len(self._entries) >= MAX_ENTRIES:
                self._leave_out(path, f"there are more than {MAX_ENTRIES:,} files and directories")
                continue
            try:
                self._entry(descriptor, each, path, depth)
            except FileNotFoundError:
                continue  # it went while it was looked at: it is not there
            except PermissionError:
                self._leave_out(path, "this account may not read it")
            except tree.NotARegularFile:
                self._leave_out(path, "it became something else while it was read")

    def _entry(self, parent: int, each: os.DirEntry[str], path: str, depth: int) -> None:
        if each.is_symlink():
            target = os.fsencode(os.readlink(each.name, dir_fd=parent))
            self._entries.append(Entry(os.fsencode(path), "link", 0, target=target))
        elif each.is_file(follow_symlinks=False):
            self._file(parent, each.name, path)
        elif each.is_dir(follow_symlinks=False):
            self._below(parent, each.name, path, depth)
        else:
            self._leave_out(path, "it is a pipe, a socket or a device", is_lost=False)

    def _below(self, parent: int, name: str, path: str, depth: int) -> None:
        if depth >= MAX_DEPTH:
            self._leave_out(path, f"it is more than {MAX_DEPTH} directories deep")
            return
        descriptor = tree.below(parent, name)
        try:
            mode = self._mode(os.fstat(descriptor).st_mode, path)
            self._entries.append(Entry(os.fsencode(path), "directory", mode))
            self.directory(descriptor, f"{path}/", depth + 1)
        finally:
            os.close(descriptor)

    def _file(self, parent: int, name: str, path: str) -> None:
        descriptor, facts = tree.regular(parent, name)
        try:
            for _ in range(_ATTEMPTS):
                content = self._content(descriptor, facts.st_size)
                after = os.fstat(descriptor)
                is_settled = _same(facts, after)
                if is_settled or content is None:
                    break
                facts = after
                os.lseek(descriptor, 0, os.SEEK_SET)
        finally:
            os.close(descriptor)
        if content is None:
            size = f"{facts.st_size / MB:,.1f} MB"
            self._leave_out(path, f"{size} are more than is left of {self._max / MB:,.0f} MB")
            return
        sha256, size_read = content
        if path == REPORT_NAME and self._is_kept_report(sha256):
            return
        if not is_settled:
            self._leave_out(path, "kept as it was read, and it changed meanwhile", is_lost=False)
        self._room -= size_read
        mode = self._mode(facts.st_mode, path)
        self._entries.append(Entry(os.fsencode(path), "file", mode, size_read, sha256))

    def _content(self, descriptor: int, size: int) -> tuple[str, int] | None:
        """A file's digest and size, its content kept; None when there is no room for it."""
        if size > self._room:  # a sparse file counts as what a reader of it gets
            return None
        if size < PIECE:
            data = os.read(descriptor, size + 1)
            if len(data) <= size:
                sha256 = hashlib.sha256(data).hexdigest()
                self._incoming.add(sha256, data)
                return sha256, len(data)
            os.lseek(descriptor, 0, os.SEEK_SET)
        digest, read = hashlib.sha256(), 0
        for piece in _pieces(descriptor):
            digest.update(piece)
            read += len(piece)
            if read > self._room:
                return None
        if not self._incoming.has(digest.hexdigest()):
            os.lseek(descriptor, 0, os.SEEK_SET)
            sha256, read = self._incoming.add_pieces(_pieces(descriptor, limit=self._room))
            return sha256, read
        return digest.hexdigest(), read

    def _mode(self, mode: int, path: str) -> int:
        if mode & _SET_ID:
            self._leave_out(path, "kept without its set-id bit", is_lost=False)
        return mode & _PERMISSIONS

    def _leave_out(self, path: str, why: str, *, is_lost: bool = True) -> None:
        if len(self._left_out) < TOLD:
            self._left_out.append(LeftOut(visible_name(path, limit=1000), why, is_lost))
        else:
            self._more += 1
            self._more_lost |= is_lost


def _pieces(descriptor: int, *, limit: int | None = None) -> Iterator[bytes]:
    while limit is None or limit > 0:
        piece = os.read(descriptor, PIECE if limit is None else min(PIECE, limit))
        if not piece:
            return
        if limit is not None:
            limit -= len(piece)
        yield piece


def _same(before: os.stat_result, after: os.stat_result) -> bool:
    return (
        before.st_mtime_ns == after.st_mtime_ns
        and before.st_ctime_ns == after.st_ctime_ns
        and before.st_size == after.st_size
    )
