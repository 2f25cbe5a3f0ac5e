"""Recording files in a store, and the tree they make.

The ids are computed here, over the bytes that are written; git gets them in one stream, and its
index, with its own checks of names, makes the trees.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO

from changes.git import line
from changes.store import Store, object_id

_PIECE = 1 << 20
_MUCH = 256 << 20  # bytes read before sizes are asked for: most clones never come so far
_WHOLE = 4 << 20  # bytes: what is read at once, and written only when it is new


class Changed(Exception):
    """A file was not of the size it said when it was read to its end."""


class Full(Exception):
    """There is more new content than is taken."""


class Recorder:
    """Collects what has to be written into a store, up to `room` bytes."""

    def __init__(
        self,
        hasher: Callable[[bytes], hashlib._Hash],
        stream: IO[bytes],
        room: int,
        sizes: Callable[[], Mapping[str, int]],
    ) -> None:
        self._hasher = hasher
        self._stream = stream
        self._room = room
        self._sizes = sizes
        self._read = 0
        self.bytes = 0
        self.files = 0

    def bytes_of(self, data: bytes, known: str) -> str:
        """The id of a blob; it is recorded unless it is the known one. Raises Full."""
        digest = self._hasher(b"blob %d\0" % len(data))
        digest.update(data)
        name = digest.hexdigest()
        if name != known:
            self._record_head(len(data))
            self._stream.write(data + b"\n")
        return name

    def file(self, descriptor: int, size: int, known: str) -> str:
        """The same for an open file of a size. Raises Changed when it has another by now.

        No more is read than the known files hold, and what there is room for.
        """
        self._read += size
        if known and self._read > _MUCH and self._sizes().get(known) != size:
            known = ""
        if not known:
            self._require_room(size)
        if size <= _WHOLE:
            data = b"".join(_pieces(descriptor, size))
            if len(data) != size or os.read(descriptor, 1):
                raise Changed
            return self.bytes_of(data, known)
        if known and self._hashed(descriptor, size, None) == known:
            return known
        os.lseek(descriptor, 0, os.SEEK_SET)
        self._record_head(size)
        name = self._hashed(descriptor, size, self._stream)
        self._stream.write(b"\n")
        return name

    def _hashed(self, descriptor: int, size: int, stream: IO[bytes] | None) -> str:
        digest = self._hasher(b"blob %d\0" % size)
        left = size
        for piece in _pieces(descriptor, size):
            digest.update(piece)
            left -= len(piece)
            if stream is not None:
                stream.write(piece)
        if left or os.read(descriptor, 1):
            if stream is not None:  # the stream has promised so many
                for start in range(0, left, _PIECE):
                    stream.write(bytes(min(_PIECE, left - start)))
                stream.write(b"\n")
            raise Changed
        return digest.hexdigest()

    def _require_room(self, size: int) -> None:
        if self.bytes + size > self._room:
            raise Full

    def _record_head(self, size: int) -> None:
        self._require_room(size)
        self._stream.write(b"blob\ndata %d\n" % size)
        self.files += 1
        self.bytes += size


@contextmanager
def recording(store: Store, room: int, known: Collection[str]) -> Iterator[Recorder]:
    """A recorder whose contents are in the store after the block.

    Args:
        room: how many bytes are recorded at most.
        known: every object that may be named to the recorder as the known one.
    Raises:
        GitError: git could not take the contents.
    """
    hasher = hashlib.sha1 if store.object_format() == "sha1" else hashlib.sha256
    with tempfile.TemporaryFile(dir=store.path) as stream:
        sizes = cache(lambda: store.sizes(known))
        recorder = Recorder(hasher, stream, room, sizes)
        yield recorder
        if not recorder.files:
            return
        stream.write(b"done\n")
        stream.flush()
        stream.seek(0)
        # a delta to whichever file came before is a waste of time
        store.git("fast-import", "--quiet", "--done", "--depth=0", stdin=stream)


def tree_with(
    store: Store, base_tree: str, removed: Iterator[bytes], put: Mapping[bytes, tuple[str, str]]
) -> str:
    """The tree that is the base without some paths and with others.

    Args:
        put: mode and object id of each path.
    Raises:
        GitError: git refuses a path, or an object is missing.
    """
    nothing = "0" * len(object_id(base_tree))
    lines = [f"0 {nothing}\t".encode() + path for path in removed]
    lines += [f"{mode} {name}\t".encode() + path for path, (mode, name) in sorted(put.items())]
    with tempfile.TemporaryDirectory(dir=store.path) as scratch:
        env = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        store.git("read-tree", base_tree, env=env)
        if lines:
            told = b"".join(one + b"\0" for one in lines)
            store.git("update-index", "-z", "--index-info", env=env, stdin=told)
        return line(store.git("write-tree", env=env))


def _pieces(descriptor: int, size: int) -> Iterator[bytes]:
    left = size
    while left:
        piece = os.read(descriptor, min(left, _PIECE))
        if not piece:
            return
        left -= len(piece)
        yield piece
