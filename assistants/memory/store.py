"""Where snapshots are kept: contents by their sha256, and a list for each different memory.

A content is written to a directory of its own first, brought to the disk, and only then given its
name; a list is written after all it names. So whatever stands under a name is whole, at whatever
point a process is killed or the power fails. Writers hold `Store.locked`.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from assistants.memory.manifest import Damaged, Manifest, decoded

PIECE = 1 << 20
_PLAIN, _PACKED = b"p", b"z"  # the first byte of a stored content
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Store:
    """One assistant's memory on disk.

    Args:
        root: a directory outside every mount; made when it is missing.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._objects, self._lists = root / "objects", root / "lists"
        self._incoming = root / "incoming"
        for path in (root, self._objects, self._lists, self._incoming):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Alone among all processes; waits. What a killed writer left half is removed."""
        with (self.root / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left in self._incoming.iterdir():
                shutil.rmtree(left)
            yield

    @contextlib.contextmanager
    def incoming(self) -> Iterator[Incoming]:
        """Takes new contents; they count once `Incoming.keep` was called."""
        place = self._incoming / secrets.token_hex(8)
        place.mkdir(mode=0o700)
        try:
            yield Incoming(place, self)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def names(self) -> set[str]:
        """The digests of all contents that are there."""
        return {
            shelf.name + file
            for shelf in self._objects.iterdir()
            for file in os.listdir(shelf)  # noqa: PTH208 - names only, and there may be many
        }

    def place(self, sha256: str) -> Path:
        if not _DIGEST.fullmatch(sha256):
            raise Damaged("a memory names a content that cannot be")
        return self._objects / sha256[:2] / sha256[2:]

    def content(self, sha256: str) -> Iterator[bytes]:
        """A content, piece by piece. Raises Damaged, at its end at the latest, if it is another."""
        checked = hashlib.sha256()
        try:
            with self.place(sha256).open("rb") as file:
                for piece in _unpacked(file.read(1), iter(lambda: file.read(PIECE), b"")):
                    checked.update(piece)
                    yield piece
        except (FileNotFoundError, zlib.error) as exc:
            raise Damaged(f"content {sha256[:12]} of the memory is lost or damaged") from exc
        if checked.hexdigest() != sha256:
            raise Damaged(f"content {sha256[:12]} of the memory is damaged")

    def beginning(self, sha256: str, limit: int) -> bytes:
        """At most `limit` bytes of a content, unchecked. Raises Damaged when it is not there."""
        data = bytearray()
        for piece in self.content(sha256):
            data += piece
            if len(data) >= limit:
                break
        return bytes(data[:limit])

    def save(self, manifest: Manifest) -> None:
        """Keep a list; one that is there stays as it is."""
        path = self._list(manifest.digest)
        if path.exists():
            path.touch()  # it is wanted again: collecting leaves it alone for a while
            return
        draft = self._incoming / f"{secrets.token_hex(8)}"
        draft.mkdir(mode=0o700)
        file = draft / "list"
        with file.open("wb") as out:
            out.write(zlib.compress(manifest.encoded, 1))
            out.flush()
            os.fsync(out.fileno())
        file.rename(path)
        draft.rmdir()
        sync_directory(self._lists)

    def load(self, digest: str) -> Manifest:
        """The list of that digest. Raises Damaged."""
        try:
            data = zlib.decompress(self._list(digest).read_bytes())
        except (FileNotFoundError, zlib.error) as exc:
            raise Damaged(f"the list of memory {digest[:12]} is lost or damaged") from exc
        if hashlib.sha256(data).hexdigest() != digest:
            raise Damaged(f"the list of memory {digest[:12]} is damaged")
        return decoded(data)

    def collect(self, wanted: Callable[[str, float], bool]) -> int:
        """Remove lists that are not wanted, and contents no list names; returns how many contents.

        Args:
            wanted: told a list's digest and when it was last saved, in seconds since the epoch.
        """
        named: set[str] = set()
        for path in self._lists.iterdir():
            if wanted(path.name, path.stat().st_mtime):
                named |= self.load(path.name).objects()
            else:
                path.unlink()
        going = self.names() - named
        for sha256 in going:
            self.place(sha256).unlink()
        return len(going)

    def _list(self, digest: str) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise Damaged("that is no digest of a memory")
        return self._lists / digest


class Incoming:
    """New contents of one snapshot, before they count."""

    def __init__(self, place: Path, store: Store) -> None:
        self._place, self._store = place, store
        self._known = store.names()
        self._new: list[str] = []

    def has(self, sha256: str) -> bool:
        return sha256 in self._known

    def add(self, sha256: str, data: bytes) -> None:
        """Take a content that is in memory, whose digest is known."""
        if sha256 not in self._known:
            packed = zlib.compress(data, 1)
            shorter = len(packed) < len(data)
            written = _PACKED + packed if shorter else _PLAIN + data
            (self._place / sha256).write_bytes(written)
            self._note(sha256)

    def add_pieces(self, pieces: Iterable[bytes]) -> tuple[str, int]:
        """Take a content piece by piece; its digest and size, which only its end tells."""
        digest, size = hashlib.sha256(), 0
        draft = self._place / "draft"
        packing = zlib.compressobj(1)
        with draft.open("wb") as out:
            out.write(_PACKED)
            for piece in pieces:
                digest.update(piece)
                size += len(piece)
                out.write(packing.compress(piece))
            out.write(packing.flush())
        sha256 = digest.hexdigest()
        if sha256 in self._known:
            draft.unlink()
        else:
            draft.rename(self._place / sha256)
            self._note(sha256)
        return sha256, size

    def keep(self) -> None:
        """Bring all that was added to the disk, and give each its name."""
        if not self._new:
            return
        sync_file_system(self._place)
        for sha256 in self._new:
            place = self._store.place(sha256)
            place.parent.mkdir(mode=0o700, exist_ok=True)
            (self._place / sha256).rename(place)
        sync_file_system(self._place)

    def _note(self, sha256: str) -> None:
        self._known.add(sha256)
        self._new.append(sha256)


def _unpacked(form: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    if form == _PLAIN:
        yield from pieces
        return
    if form != _PACKED:
        raise zlib.error("neither of the two forms")
    unpacking = zlib.decompressobj()
    for piece in pieces:
        waiting = piece
        while waiting:  # a megabyte of zeros is a thousand bytes: never all at once
            yield unpacking.decompress(waiting, PIECE)
            waiting = unpacking.unconsumed_tail
    yield unpacking.flush()
    if not unpacking.eof:
        raise zlib.error("it ends in the middle")


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file_system(path: Path) -> None:
    """Bring everything written on the file system of `path` to the disk: one wait for many files.

    Raises OSError when the disk failed.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _syncfs(descriptor)
    finally:
        os.close(descriptor)


def _syncfs(descriptor: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "syncfs"):  # not Linux
        os.sync()
    elif library.syncfs(descriptor):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
