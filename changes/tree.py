"""Reading what an agent left in its clone, and making a tree of it in our own store.

Only files count: the clone's `.git`, its index, its configuration and its commits are never
looked at. Each name is opened below an open directory and never followed (`runs.tree`). What
cannot be taken exactly is refused by name, and the base stays as it was at that path.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from changes import module_files
from changes.entries import Entry, listing
from changes.gathered import Gathered, is_below
from changes.ignore_rules import IgnoreRules, of_base
from changes.names import forbidden, is_module_file
from changes.objects import Changed, Full, Recorder, recording
from changes.own_paths import is_ours
from changes.store import Store
from runs.refusal import Refusal
from runs.tree import NotARegularFile, below, opened, regular

_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is read.

    Attributes:
        file_bytes: of one file.
        new_bytes: of everything that differs from the base.
        entries: names looked at, in the whole clone.
        depth: directories inside each other.
    """

    file_bytes: int = 128 * _MB
    new_bytes: int = 256 * _MB
    entries: int = 1_000_000
    depth: int = 256


@dataclass(frozen=True, slots=True)
class Refused:
    """A path that is not in the result, and why; the reason follows the path in a sentence."""

    path: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """Something new that the base commit's rules leave out; a directory's path ends in a slash."""

    path: bytes
    files: int


@dataclass(frozen=True, slots=True)
class Result:
    """What the clone holds.

    Attributes:
        tree: the result's id in the store.
        ignored_created: what was left out by the rules, and can be asked for.
        refused: what could not be taken.
        taken: what is in the tree though the rules leave it out, since it was asked for.
        files, bytes: what had to be recorded anew.
    """

    tree: str
    ignored_created: tuple[Ignored, ...]
    refused: tuple[Refused, ...]
    taken: tuple[bytes, ...]
    files: int
    bytes: int


def read(
    clone: Path,
    store: Store,
    base_commit: str,
    *,
    take: Collection[bytes] = (),
    limits: Limits = Limits(),  # it is frozen
) -> Result:
    """The tree of the files in a clone that started from a base commit.

    Args:
        take: paths to take though the rules leave them out, or though they are another
            repository: files, or directories without a slash at the end.
        limits: what is more is refused.
    Raises:
        Refusal: there are more names than anybody can look at.
        OSError: the clone itself cannot be opened.
    """
    base_tree = store.tree_of(base_commit)
    base = {entry.path: entry for entry in listing(store.path, base_tree)}
    with (
        opened(str(clone)) as root,
        of_base(store, list(base.values())) as rules,
        recording(store, limits.new_bytes, [entry.id for entry in base.values()]) as recorder,
    ):
        reader = _Reader(root, base, rules, recorder, frozenset(take), limits)
        reader.walk()
        reader.refuse_twins()
    tree = reader.tree(store, base_tree)
    for path, reason in module_files.broken(store, base, reader.found).items():
        reader.refuse(path, reason)
        tree = ""
    return Result(
        tree or reader.tree(store, base_tree),
        tuple(sorted(reader.ignored, key=lambda one: one.path)),
        tuple(Refused(path, reason) for path, reason in sorted(reader.refused.items())),
        tuple(sorted(path for path in reader.taken if path in reader.found)),
        recorder.files,
        recorder.bytes,
    )


class _Reader(Gathered):
    """One walk over a clone, level by level."""

    def __init__(
        self,
        root: int,
        base: dict[bytes, Entry],
        rules: IgnoreRules,
        recorder: Recorder,
        take: frozenset[bytes],
        limits: Limits,
    ) -> None:
        super().__init__(base)
        self._root = root
        self._rules = rules
        self._recorder = recorder
        self._take = take
        self._limits = limits
        self._entries = self._counted = 0
        self.ignored: list[Ignored] = []
        self.taken: set[bytes] = set()

    def walk(self) -> None:
        level = [b""]
        depth = 0
        while level:
            directories: list[bytes] = []
            files: list[bytes] = []
            for directory in level:
                self._look(directory, directories, files)
            ignored = self._rules.ignored(
                [path for path in directories if path not in self._directories],
                [path for path in files if path not in self._base],
            )
            wanted = (path for path in files if self._wanted(path, ignored))
            for directory, paths in groupby(wanted, lambda path: path.rpartition(b"/")[0]):
                self._read_all(directory, paths)
            level = [path for path in directories if self._descends(path, ignored)]
            depth += 1
            if depth > self._limits.depth:
                for path in level:
                    self.refuse(path, f"lies deeper than {self._limits.depth} directories")
                return

    def _look(self, directory: bytes, directories: list[bytes], files: list[bytes]) -> None:
        """Sort the names in one directory, or refuse it."""
        try:
            with _directory(self._root, directory) as descriptor:
                names = list(self._names(descriptor))
                if self._is_other_repository(directory, names):
                    return
                for name in sorted(names):
                    mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
                    self._sort(_join(directory, name), mode, directories, files)
        except OSError as exc:
            if not directory:
                raise
            self.refuse(directory, f"cannot be looked into: {exc.strerror or exc}")

    def _names(self, descriptor: int) -> Iterator[bytes]:
        with os.scandir(descriptor) as found:
            for entry in found:
                self._entries += 1
                if self._entries > self._limits.entries:
                    raise Refusal(f"the clone holds more than {self._limits.entries} names")
                yield os.fsencode(entry.name)

    def _sort(self, path: bytes, mode: int, directories: list[bytes], files: list[bytes]) -> None:
        if path == b".git" or is_ours(path):
            return
        reason = forbidden(path)
        if reason:
            self.refuse(path, reason)
        elif stat.S_ISDIR(mode):
            directories.append(path)
        elif stat.S_ISREG(mode) or (stat.S_ISLNK(mode) and not is_module_file(path)):
            files.append(path)
        elif stat.S_ISLNK(mode):
            self.refuse(path, "is a link where git follows none")
        else:
            self.refuse(path, "is a pipe, a socket or a device")

    def _is_other_repository(self, directory: bytes, names: Collection[bytes]) -> bool:
        """Whether the directory is one; it is dealt with then."""
        entry = self._base.get(directory)
        if entry is not None and entry.is_repository:
            if names:
                self.refuse(directory, "is a submodule: what was written in it cannot land here")
            else:
                self.found[directory] = (entry.mode, entry.id)
            return True
        bare = {b"HEAD", b"objects", b"refs"} <= set(names)
        if not directory or directory in self._directories or not (bare or b".git" in names):
            return False
        if is_below(directory, self._take):
            return False
        self.refuse(directory, "is a repository of its own; its files can be asked for")
        return True

    def _wanted(self, path: bytes, ignored: Collection[bytes]) -> bool:
        if path not in ignored:
            return True
        if is_below(path, self._take):
            self.taken.add(path)
            return True
        self.ignored.append(Ignored(path, 1))
        return False

    def _descends(self, path: bytes, ignored: Collection[bytes]) -> bool:
        if path not in ignored or is_below(path, self._take):
            return True
        if any(wanted.startswith(path + b"/") for wanted in self._take):
            return True
        self.ignored.append(Ignored(path + b"/", self._count(path)))
        return False

    def _count(self, directory: bytes) -> int:
        """How many files lie below a directory that is not read; no more than can be looked at."""
        files, level = 0, [directory]
        for _ in range(self._limits.depth):
            deeper = []
            for path in level:
                try:
                    with (
                        _directory(self._root, path) as descriptor,
                        os.scandir(descriptor) as found,
                    ):
                        for entry in found:
                            self._counted += 1
                            if entry.is_dir(follow_symlinks=False):
                                deeper.append(_join(path, os.fsencode(entry.name)))
                            else:
                                files += 1
                except OSError:  # it counts for nothing, and nothing of it is read
                    continue
            level = deeper if self._counted <= self._limits.entries else []
        return files

    def _read_all(self, directory: bytes, paths: Iterable[bytes]) -> None:
        """Read files of one directory."""
        try:
            with _directory(self._root, directory) as descriptor:
                for path in paths:
                    reason = self._why_not(path, descriptor)
                    if reason:
                        self.refuse(path, reason)
        except OSError as exc:
            self.refuse(directory, f"cannot be looked into: {exc.strerror or exc}")

    def _why_not(self, path: bytes, directory: int) -> str:
        """Read one file; why it could not be, or ""."""
        try:
            return self._read(path, directory, os.fsdecode(path.rpartition(b"/")[2]))
        except Full:
            return f"is more than {self._limits.new_bytes // _MB} MB of new content"
        except Changed:
            return "changed while it was read"
        except NotARegularFile:
            return "was swapped while it was read"
        except OSError as exc:
            return f"cannot be read: {exc.strerror or exc}"

    def _read(self, path: bytes, directory: int, name: str) -> str:
        known = self._base[path].id if path in self._base else ""
        facts = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISLNK(facts.st_mode):
            target = os.fsencode(os.readlink(name, dir_fd=directory))
            self.found[path] = ("120000", self._recorder.bytes_of(target, known))
            return ""
        descriptor, facts = regular(directory, name)
        try:
            if facts.st_size > self._limits.file_bytes:
                limit = self._limits.file_bytes // _MB
                return f"holds {facts.st_size} bytes, more than {limit} MB"
            mode = "100755" if facts.st_mode & stat.S_IXUSR else "100644"
            self.found[path] = (mode, self._recorder.file(descriptor, facts.st_size, known))
            return ""
        finally:
            os.close(descriptor)


@contextmanager
def _directory(root: int, path: bytes) -> Iterator[int]:
    """A descriptor of a directory below the open one, each name on the way opened by itself."""
    descriptor = os.dup(root)
    try:
        for part in os.fsdecode(path).split("/") if path else ():
            deeper = below(descriptor, part)
            os.close(descriptor)
            descriptor = deeper
        yield descriptor
    finally:
        os.close(descriptor)


def _join(directory: bytes, name: bytes) -> bytes:
    return directory + b"/" + name if directory else name
