"""Our own object store of one repository: where a base is kept and a result is built.

A bare repository under SANDUK_HOME with our configuration and our attributes. It borrows no
objects from elsewhere (no alternates), and no agent ever sees it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from changes.git import GitError, git, line
from runs.tree import Content

# nothing converts a byte, and nothing in a tree says what is text, how to compare or to merge it
ATTRIBUTES = (
    "* -text -eol -filter -ident -working-tree-encoding -export-ignore -export-subst"
    " !diff !merge !whitespace !conflict-marker-size\n"
)
FORMATS = ("sha1", "sha256")
_ID = re.compile("[0-9a-z][0-9a-z-]{0,63}")
_OBJECT = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
_PER_REQUEST = 1000


@dataclass(frozen=True, slots=True)
class Store:
    """One object store, by its directory."""

    path: Path

    def git(self, *words: str | bytes | Path, **options: Any) -> bytes:
        """`changes.git.git` in this store."""
        return git(*words, git_dir=self.path, **options)

    def take(self, bundle: Path, commit: str, shallow: Iterable[str] = ()) -> None:
        """Take what a bundle of ours holds, and keep `commit` for good.

        Args:
            shallow: commits whose parents are not in the bundle.
        Raises:
            GitError: the bundle is broken, or does not hold the commit.
        """
        self._cut(shallow)
        self.git("bundle", "unbundle", bundle)
        self.git("rev-parse", "--verify", "--quiet", f"{object_id(commit)}^{{tree}}")
        self.keep(f"bases/{commit}", commit)

    def keep(self, name: str, thing: str) -> None:
        """Protect an object, and all it needs, from being pruned."""
        self.git("update-ref", f"refs/sanduk/{name}", object_id(thing))

    def forget(self, name: str) -> None:
        """Let go of what `keep` protected."""
        self.git("update-ref", "-d", f"refs/sanduk/{name}")

    def holds(self, thing: str) -> bool:
        """Whether the object is here."""
        try:
            self.git("cat-file", "-e", object_id(thing))
        except GitError as exc:
            if exc.code == 1:
                return False
            raise
        return True

    def tree_of(self, commit: str) -> str:
        """The tree of a commit, or of a tree itself."""
        return line(self.git("rev-parse", "--verify", "--quiet", f"{object_id(commit)}^{{tree}}"))

    def object_format(self) -> str:
        """`sha1` or `sha256`."""
        return line(self.git("rev-parse", "--show-object-format"))

    def blob(self, thing: str, *, limit: int) -> Content:
        """A file's first `limit` bytes, and its size."""
        size = int(self.git("cat-file", "-s", object_id(thing)))
        if size <= limit:
            return Content(self.git("cat-file", "blob", object_id(thing), limit_bytes=limit), size)
        with tempfile.TemporaryFile() as file:
            self.git("cat-file", "blob", object_id(thing), stdout=file)
            file.seek(0)
            return Content(file.read(limit), size)

    def sizes(self, things: Iterable[str]) -> dict[str, int]:
        """The size of each object that is here, in bytes."""
        asked = "".join(f"{object_id(thing)}\n" for thing in things).encode()
        said = self.git("cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=asked)
        lines = (found.split() for found in said.decode().splitlines())
        return {found[0]: int(found[1]) for found in lines if found[1].isdigit()}

    def blobs(self, things: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Each file's whole content. Many small files cost one process a thousand."""
        wanted = [object_id(thing) for thing in things]
        for start in range(0, len(wanted), _PER_REQUEST):
            asked = "".join(f"{one}\n" for one in wanted[start : start + _PER_REQUEST]).encode()
            with tempfile.TemporaryFile() as file:
                self.git("cat-file", "--batch", stdin=asked, stdout=file)
                file.seek(0)
                while head := file.readline():
                    name, kind, size = head.decode().split()
                    if kind != "blob":
                        raise GitError(f"{name} is a {kind} where a file was expected")
                    yield name, file.read(int(size))
                    file.read(1)

    def _cut(self, shallow: Iterable[str]) -> None:
        wanted = {object_id(commit) for commit in shallow}
        file = self.path / "shallow"
        with (self.path / "sanduk.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = set(file.read_text().split()) if file.exists() else set()
            if wanted <= known:
                return
            write_whole(file, "".join(f"{one}\n" for one in sorted(wanted | known)))


def opened(directory: Path, *, object_format: str = "sha1") -> Store:
    """The store in this directory, made when it is missing.

    Raises:
        GitError: it is there with another object format, or cannot be made.
    """
    if object_format not in FORMATS:
        raise GitError(f"no object format of git: {object_format}")
    if not (directory / "HEAD").exists():
        _make(directory, object_format)
    store = Store(directory)
    if store.object_format() != object_format:
        raise GitError(f"the store {directory} is not of the format {object_format}")
    return store


def place(repositories: Path, repository: str) -> Path:
    """Where the store of a repository with this id stands; an id is never a path."""
    if not _ID.fullmatch(repository):
        raise GitError(f"no id of a repository: {repository}")
    return repositories / f"{repository}.git"


def object_id(text: str) -> str:
    """`text`, when it is a full object id: nothing else ever becomes a word of a command."""
    if not _OBJECT.fullmatch(text):
        raise GitError(f"no object id: {text}")
    return text


def write_whole(file: Path, text: str) -> None:
    """Replace a file by its new text, or leave it as it was."""
    descriptor, name = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(descriptor, "w") as new:
        new.write(text)
    Path(name).replace(file)


def _make(directory: Path, object_format: str) -> None:
    directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=".new-", dir=directory.parent))
    try:
        words = ("init", "--quiet", "--bare", "--template=", f"--object-format={object_format}")
        git(*words, new, cwd=directory.parent)
        (new / "info").mkdir(exist_ok=True)
        (new / "info" / "attributes").write_text(ATTRIBUTES)
        with contextlib.suppress(OSError):  # somebody else made it first
            new.rename(directory)
    finally:
        shutil.rmtree(new, ignore_errors=True)
