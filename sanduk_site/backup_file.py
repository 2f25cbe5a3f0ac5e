"""The file of a backup: a tar of plain files, and behind them a list of what must be in it."""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from runs.refusal import Refusal

KIND = "sanduk-backup-1"
LIST = "manifest.json"
DATABASE = "sanduk.sqlite3"
SECRETS = ("credentials", "secret_key")
FILES = ("install-id", "audit-head", "providers.toml", "prices.toml")
TREES = ("memory", "repos", "changes", "runs")
_LIST_MAX = 512 * 2**20
_PIECE = 1 << 20
_PART = re.compile(r"[^/\0]{1,255}")


class Held(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file: its length in bytes, and its hash."""

    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a backup says of itself.

    Attributes:
        migrations: "app.name" of each that its database has; empty where it has none.
        left_out: what belongs to the installation and is not in it, in words.
    """

    kind: str
    version: str
    made_at: str
    installation: str
    with_secrets: bool
    migrations: tuple[str, ...]
    left_out: tuple[str, ...]
    directories: tuple[str, ...]
    files: dict[str, Held]


class Writer:
    """Puts files into the tar, and remembers what it put there."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self.files: dict[str, Held] = {}
        self.directories: list[str] = []

    def tree(self, root: Path, name: str, *, without: frozenset[str] = frozenset()) -> None:
        """A directory with all below it but links, devices and directories named in `without`."""
        self._directory(name)
        for entry in sorted(os.scandir(root), key=lambda each: each.name):
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in without:
                    self.tree(Path(entry.path), f"{name}/{entry.name}", without=without)
            elif entry.is_file(follow_symlinks=False):
                self.file(Path(entry.path), f"{name}/{entry.name}")

    def file(self, path: Path, name: str) -> bool:
        """One file, as long as it is now. False when it has gone meanwhile."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        with os.fdopen(descriptor, "rb") as file:
            size = os.fstat(descriptor).st_size
            hashed = _Hashed(file, size)
            self._add(name, size, hashed)
        self.files[name] = Held(size, hashed.sha256)
        return True

    def text(self, name: str, content: bytes) -> None:
        self._add(name, len(content), io.BytesIO(content))

    def _add(self, name: str, size: int, content: Any) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode = size, 0o600
        self._tar.addfile(info, content)

    def _directory(self, name: str) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.mode = tarfile.DIRTYPE, 0o700
        self._tar.addfile(info)
        self.directories.append(name)


class _Hashed:
    """Reads exactly so many bytes; what was cut off a file meanwhile is zeros, and hashed so."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._left = file, size
        self._hash = hashlib.sha256()

    def read(self, wanted: int) -> bytes:
        wanted = min(wanted, self._left)
        piece = self._file.read(wanted)
        piece += bytes(wanted - len(piece))
        self._left -= len(piece)
        self._hash.update(piece)
        return piece

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


def read_back(path: Path, into: Path, *, only: frozenset[str] | None = None) -> Manifest:
    """Read all of a backup, hold it against its list, and write its files below `into`.

    Args:
        into: an empty directory of 0700.
        only: the files to write there; None: all. The others are read and hashed, too.

    Raises Refusal: it is no backup, or is not as it was written. OSError: it cannot be written.
    """
    found: dict[str, Held] = {}
    directories: list[str] = []
    manifest = None
    try:
        with tarfile.open(path, "r|gz") as tar:
            for member in tar:
                if manifest is not None:
                    raise _Broken("something stands behind its end")
                if member.name == LIST and member.isreg():
                    manifest = _manifest(_content(tar, member, _LIST_MAX))
                    continue
                target = into / _checked(member)
                if member.isdir():
                    directories.append(member.name)
                    if only is None:
                        target.mkdir(mode=0o700)
                else:
                    is_wanted = only is None or member.name in only
                    found[member.name] = _taken(tar, member, target if is_wanted else None)
    except (tarfile.TarError, EOFError, _Broken, msgspec.MsgspecError) as exc:
        raise _no_backup(path, str(exc)) from None
    except OSError as exc:
        if exc.errno is not None:
            raise
        raise _no_backup(path, str(exc)) from None  # gzip's own, for what is no gzip
    if manifest is None:
        raise _no_backup(path, "its end is missing")
    for name in sorted(set(manifest.files) ^ set(found)):
        raise _no_backup(path, f"{name!r} is {'missing' if name not in found else 'not listed'}")
    for name, held in manifest.files.items():
        if found[name] != held:
            raise _no_backup(path, f"{name!r} is not what was put there")
    if sorted(directories) != sorted(manifest.directories):
        raise _no_backup(path, "its directories are not those it lists")
    return manifest


class _Broken(Exception):
    pass


def _no_backup(path: Path, why: str) -> Refusal:
    return Refusal(f"{path} is no whole backup of sanduk's: {why[:200]}")


def _manifest(content: bytes) -> Manifest:
    found = msgspec.json.decode(content, type=Manifest)
    if found.kind != KIND:
        raise _Broken(f"it is of another kind, {found.kind[:40]!r}")
    return found


def _checked(member: tarfile.TarInfo) -> str:
    """The member's name, which leads nowhere but below where it is put."""
    parts = member.name.split("/")
    is_plain = all(_PART.fullmatch(part) and part not in (".", "..") for part in parts)
    known = (*FILES, *SECRETS, DATABASE) if len(parts) == 1 and member.isreg() else TREES
    if not is_plain or parts[0] not in known or not (member.isreg() or member.isdir()):
        raise _Broken(f"{member.name!r} has no place in one")
    return member.name


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo, most: int) -> bytes:
    file = tar.extractfile(member)
    if file is None or member.size > most:
        raise _Broken("its list cannot be read")
    return file.read()


def _taken(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path | None) -> Held:
    """Hash a file and, with a target, write it there."""
    file = tar.extractfile(member)
    if file is None:
        raise _Broken(f"{member.name!r} cannot be read")
    hashed, size = hashlib.sha256(), 0
    with _new(target) as out:
        for piece in _pieces(file):
            hashed.update(piece)
            size += len(piece)
            out.write(piece)
    return Held(size, hashed.hexdigest())


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _new(target: Path | None) -> IO[bytes]:
    if target is None:
        return Path(os.devnull).open("wb")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(target, flags, 0o600), "wb")
