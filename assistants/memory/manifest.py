"""What a workspace holds, as a list that is the same whenever the memory is the same."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

Kind = Literal["file", "directory", "link"]

_HEAD = b"sanduk memory 1\0"
_LETTER: dict[Kind, bytes] = {"file": b"f", "directory": b"d", "link": b"l"}
_KIND = {letter: kind for kind, letter in _LETTER.items()}


class Damaged(ValueError):
    """What is stored is not what was stored."""


class Entry(NamedTuple):
    """One file, directory or symbolic link.

    Args:
        path: relative to the workspace, in the bytes of the file system.
        mode: permission bits, with the sticky bit; those of a link mean nothing and are 0.
        size: of a file's content, in bytes; 0 otherwise.
        sha256: of a file's content, in hexadecimal; "" otherwise.
        target: of a link, as it stands there; b"" otherwise.
    """

    path: bytes
    kind: Kind
    mode: int
    size: int = 0
    sha256: str = ""
    target: bytes = b""

    @property
    def name(self) -> str:
        """The path as text; bytes that are no UTF-8 are surrogates."""
        return os.fsdecode(self.path)


@dataclass(frozen=True)
class Manifest:
    """Every entry below a workspace, parents before what they hold. Times are no part of it."""

    entries: tuple[Entry, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Manifest:
        return cls(tuple(sorted(entries, key=lambda entry: entry.path.split(b"/"))))

    @cached_property
    def encoded(self) -> bytes:
        """The bytes that are stored, and that the digest is of."""
        return _HEAD + b"".join(map(_record, self.entries))

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.encoded).hexdigest()

    @property
    def files(self) -> int:
        return sum(entry.kind == "file" for entry in self.entries)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.entries)

    def by_path(self) -> dict[bytes, Entry]:
        return {entry.path: entry for entry in self.entries}

    def objects(self) -> set[str]:
        """The digests of every content it names."""
        return {entry.sha256 for entry in self.entries if entry.sha256}


def decoded(data: bytes) -> Manifest:
    """The list that `Manifest.encoded` gave. Raises Damaged."""
    if not data.startswith(_HEAD):
        raise Damaged("it is no list of a memory")
    try:
        return Manifest(tuple(_entries(data[len(_HEAD) :])))
    except (ValueError, KeyError, StopIteration, RuntimeError) as exc:
        raise Damaged("the list of a memory cannot be read") from exc


def _record(entry: Entry) -> bytes:
    facts = f" {entry.mode:o} {entry.size} {entry.sha256 or '-'} ".encode()
    target = entry.target + b"\0" if entry.kind == "link" else b""
    return _LETTER[entry.kind] + facts + entry.path + b"\0" + target


def _entries(data: bytes) -> Iterator[Entry]:
    *records, rest = data.split(b"\0")
    if rest:
        raise ValueError("it ends in the middle")
    fields = iter(records)
    for field in fields:
        letter, mode, size, sha256, path = field.split(b" ", 4)
        kind = _KIND[letter]
        target = next(fields) if kind == "link" else b""
        digest = "" if sha256 == b"-" else sha256.decode("ascii")
        yield Entry(path, kind, int(mode, 8), int(size), digest, target)
