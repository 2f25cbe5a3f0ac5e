"""What the agent's git wrote in its clone, taken as data into a scratch store of ours.

No git ever runs in the clone. Of its `.git` nothing is read but HEAD, the branch that HEAD names,
and the objects: those in files of their own are unpacked and hashed here, packs go through the
check that git has for what strangers send. Its configuration, index, alternates, replacements and
shallow marks stay where they are.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from changes.git import GitError
from changes.store import Store, opened
from runs.tree import below, read_file, regular
from runs.tree import opened as opened_directory

_MB = 1 << 20
_HEAD_MAX = 4096  # bytes
_PACKED_REFS_MAX = 4 << 20
_PIECE = 1 << 18
_PACK = re.compile(r"pack-(?:[0-9a-f]{40}|[0-9a-f]{64})\.pack")
_LOOSE_HEAD = re.compile(rb"(?:blob|tree|commit|tag) (0|[1-9][0-9]{0,14})\0")
_HEAD_ROOM = 32  # bytes: kind, size and their end
# what git may hold in memory of one object, whatever a pack says its size is
_MEMORY = {"GIT_ALLOC_LIMIT": "256m"}
_STREAMED = {"core.bigFileThreshold": "32m"}


class Unreadable(Exception):
    """The agent's commits cannot be had. The text ends the sentence "…, because"."""


@dataclass(frozen=True, slots=True)
class ObjectLimits:
    """How much of a clone's objects is read.

    Attributes:
        object_bytes: of one object in a file of its own; a larger one is left out.
        bytes: of all of them, unpacked, and of all packs as they are.
        objects: files of objects.
        packs: how many.
        seconds: that all of it may take.
    """

    object_bytes: int = 128 * _MB
    bytes: int = 1024 * _MB
    objects: int = 200_000
    packs: int = 50
    seconds: float = 300.0


@contextmanager
def taken(
    clone: Path, store: Store, limits: ObjectLimits = ObjectLimits()
) -> Iterator[tuple[Store, str]]:
    """A scratch store with the clone's objects, which sees our store's too, and the id HEAD is at.

    It is gone after the block.

    Raises:
        Unreadable: there is no branch, an object is no object, or there is too much.
        OSError: the clone cannot be opened.
    """
    with (
        tempfile.TemporaryDirectory(dir=store.path) as directory,
        opened_directory(str(clone)) as root,
        _inside(root, ".git") as git_dir,
    ):
        object_format = store.object_format()
        tip = _tip(git_dir, 40 if object_format == "sha1" else 64)
        scratch = opened(Path(directory) / "scratch", object_format=object_format)
        (scratch.path / "objects" / "info").mkdir(exist_ok=True)
        (scratch.path / "objects" / "info" / "alternates").write_bytes(
            os.fsencode(store.path / "objects") + b"\n"
        )
        with _inside(git_dir, "objects") as objects:
            _Taking(objects, store, scratch, limits).all()
        yield scratch, tip


class _Taking:
    """One copy of a directory of objects."""

    def __init__(self, objects: int, store: Store, scratch: Store, limits: ObjectLimits) -> None:
        self._objects, self._limits = objects, limits
        self._store, self._scratch = store, scratch
        self._hasher = hashlib.sha1 if store.object_format() == "sha1" else hashlib.sha256
        self._length = self._hasher().digest_size * 2
        self._bytes = self._count = 0
        self._until = time.monotonic() + limits.seconds

    def all(self) -> None:
        for name in _names(self._objects, self._limits.objects):
            if re.fullmatch("[0-9a-f]{2}", name):
                with _inside(self._objects, name) as directory:
                    self._loose(directory, name)
            elif name == "pack":
                with _inside(self._objects, name) as directory:
                    self._packs(directory)

    def _packs(self, directory: int) -> None:
        """Those the clone did not begin with: our store has the others under the same names."""
        ours = self._store.path / "objects" / "pack"
        found = [one for one in _names(directory, self._limits.objects) if _PACK.fullmatch(one)]
        found = [one for one in found if not (ours / one).exists()]
        if len(found) > self._limits.packs:
            raise Unreadable(f"its objects are in more than {self._limits.packs} packs")
        for name in sorted(found):
            descriptor, facts = regular(directory, name)
            with os.fdopen(descriptor, "rb") as file:
                self._spend(facts.st_size)
                words = ("index-pack", "--stdin", "--threads=1")
                size = f"--max-input-size={facts.st_size}"
                try:
                    self._scratch.git(
                        *words, size,
                        stdin=file, env=_MEMORY, settings=_STREAMED,
                        timeout_s=max(self._until - time.monotonic(), 1.0),
                    )  # fmt: skip
                except GitError as exc:
                    raise Unreadable(f"a pack of its objects is broken: {exc}") from None

    def _loose(self, directory: int, prefix: str) -> None:
        place = self._scratch.path / "objects" / prefix
        for rest in _names(directory, self._limits.objects):
            name = prefix + rest
            if len(name) != self._length or not re.fullmatch("[0-9a-f]+", rest):
                continue  # what git left half written
            self._count += 1
            if self._count > self._limits.objects:
                raise Unreadable(f"it made more than {self._limits.objects:,} objects")
            descriptor, _ = regular(directory, rest)
            place.mkdir(exist_ok=True)
            with os.fdopen(descriptor, "rb") as file, (place / "new").open("wb") as copy:
                is_whole = self._copied(file, copy, name)
            if is_whole:
                (place / "new").rename(place / rest)
            else:
                (place / "new").unlink()

    def _copied(self, file: IO[bytes], copy: IO[bytes], name: str) -> bool:
        """Write an object anew; whether it is what its name says."""
        digest, again = self._hasher(), zlib.compressobj(1)
        head, size = b"", 0
        try:
            for piece in _unpacked(file):
                head = head if size > _HEAD_ROOM else (head + piece)[:_HEAD_ROOM]
                size += len(piece)
                if size > self._limits.object_bytes + _HEAD_ROOM:
                    return False
                self._spend(len(piece))
                digest.update(piece)
                copy.write(again.compress(piece))
        except zlib.error:
            return False
        copy.write(again.flush())
        said = _LOOSE_HEAD.match(head)
        is_so_large = said is not None and int(said[1]) == size - len(said[0])
        return is_so_large and digest.hexdigest() == name

    def _spend(self, size: int) -> None:
        if time.monotonic() > self._until:
            raise Unreadable(f"reading its objects took more than {self._limits.seconds:g} s")
        self._bytes += size
        if self._bytes > self._limits.bytes:
            raise Unreadable(f"its objects are more than {self._limits.bytes // _MB} MB")


def _unpacked(file: IO[bytes]) -> Iterator[bytes]:
    """What a compressed file holds, in pieces, however much that is."""
    unpack = zlib.decompressobj()
    while not unpack.eof and (packed := unpack.unconsumed_tail or file.read(_PIECE)):
        yield unpack.decompress(packed, _PIECE)
    if not unpack.eof:
        raise zlib.error("it ends too early")


def _tip(git_dir: int, length: int) -> str:
    """The id that HEAD stands for."""
    said = _text(git_dir, "HEAD", _HEAD_MAX)
    if not said.startswith("ref: "):
        return _id(said, length, "its HEAD is no branch and no commit")
    ref = said.removeprefix("ref: ").strip()
    if not ref.startswith("refs/"):
        raise Unreadable("its HEAD is no branch and no commit")
    try:
        said = _text(git_dir, ref, _HEAD_MAX)
    except FileNotFoundError:
        said = _packed(git_dir, ref)
    return _id(said, length, "its branch is at no commit")


def _packed(git_dir: int, ref: str) -> str:
    try:
        lines = _text(git_dir, "packed-refs", _PACKED_REFS_MAX).splitlines()
    except FileNotFoundError:
        lines = []
    for one in lines:
        name, _, path = one.partition(" ")
        if path == ref:
            return name
    return ""


def _id(said: str, length: int, why: str) -> str:
    name = said.strip()
    if len(name) != length or not re.fullmatch("[0-9a-f]+", name):
        raise Unreadable(why)
    return name


def _text(directory: int, name: str, limit: int) -> str:
    return os.fsdecode(read_file(directory, name, limit=limit).data)


def _names(directory: int, most: int) -> list[str]:
    """The names in a directory, in an order that is always the same."""
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            found.append(entry.name)
            if len(found) > most:
                raise Unreadable(f"a directory of its objects holds more than {most:,} names")
    return sorted(found)


@contextmanager
def _inside(directory: int, name: str) -> Iterator[int]:
    descriptor = below(directory, name)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
