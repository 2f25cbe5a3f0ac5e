"""Repositories as a person has them, made with their own git, and clones an agent worked in."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from changes import clone, patches, tree
from changes.bundle import Provided, provide
from changes.landing import Person, land, message_of
from changes.store import Store, opened

AGENT = Person("an agent", "agent@example.test", 1_700_000_000)
BRANCH = "sanduk/change-1"
PERSON = Person("A Person", "person@example.test", 1_700_000_100, "+0200")


def person_git(
    directory: Path, *words: str | bytes | Path, env: Mapping[str, str] | None = None, **options
) -> bytes:
    """Git as the person runs it, with whatever the repository's configuration says."""
    own = {
        "PATH": os.environ["PATH"], "HOME": str(directory.parent),
        "GIT_AUTHOR_NAME": "A Person", "GIT_AUTHOR_EMAIL": "person@example.test",
        "GIT_COMMITTER_NAME": "A Person", "GIT_COMMITTER_EMAIL": "person@example.test",
        "GIT_AUTHOR_DATE": "@1600000000 +0000", "GIT_COMMITTER_DATE": "@1600000000 +0000",
        **(env or {}),
    }  # fmt: skip
    done = subprocess.run(
        ["git", *words], cwd=directory, env=own, capture_output=True, timeout=60, **options
    )
    assert done.returncode == 0, (words, done.stderr.decode(errors="replace"))
    return done.stdout


def text_of(said: bytes) -> str:
    return os.fsdecode(said).strip()


def write(directory: Path, files: Mapping[str | bytes, bytes]) -> None:
    """Put files below a directory, names as bytes or text."""
    for name, data in files.items():
        path = os.fsencode(directory) + b"/" + os.fsencode(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(data)


def repository(
    directory: Path,
    files: Mapping[str | bytes, bytes] | None = None,
    *,
    object_format: str = "sha1",
) -> Path:
    """A repository with one commit on `main`."""
    directory.mkdir(parents=True)
    person_git(directory, "init", "-q", "-b", "main", f"--object-format={object_format}")
    write(directory, {"README.md": b"hello\n", "src/app.py": b"print(1)\n", **(files or {})})
    commit(directory, "first")
    return directory


def commit(directory: Path, message: str) -> str:
    person_git(directory, "add", "-A", "-f")
    person_git(directory, "commit", "-q", "--allow-empty", "-m", message)
    return head(directory)


def head(directory: Path, name: str = "HEAD") -> str:
    return text_of(person_git(directory, "rev-parse", name))


@dataclass
class Scene:
    """A repository, its store, and the clone an agent works in."""

    repository: Path
    store: Store
    provided: Provided
    clone: Path

    @property
    def base(self) -> str:
        return self.provided.base_commit

    def read(self, **options) -> tree.Result:
        return tree.read(self.clone, self.store, self.base, **options)

    def changed(self, result: tree.Result | None = None) -> dict[bytes, patches.ChangedPath]:
        result = result or self.read()
        found = patches.changed_paths(self.store, self.provided.base_tree, result.tree)
        return {one.path: one for one in found}

    def write(self, files: Mapping[str | bytes, bytes]) -> None:
        write(self.clone, files)


def provided(made: Path, tmp_path: Path, ref: str | None = None, **options) -> Provided:
    """A bundle of a repository, in a directory of its own."""
    directory = tmp_path / "bundles"
    directory.mkdir(exist_ok=True)
    return provide(made, ref, directory=directory, **options)


def scene(where: Path, made: Path, **options) -> Scene:
    """Everything up to the moment an agent starts."""
    where.mkdir(exist_ok=True)
    provided = provide(made, directory=where, **options)
    store = opened(where / "store.git", object_format=provided.object_format)
    store.take(provided.bundle, provided.base_commit, provided.shallow)
    working = where / "clone"
    working.mkdir()
    author = ("an agent", "agent@example.test")
    clone.make(store, provided, working, branch="sanduk/change", author=author)
    return Scene(made, store, provided, working)


def listed(git_dir: Path, tree_id: str) -> list[bytes]:
    """A tree as git lists it."""
    return person_git(git_dir, "ls-tree", "-r", "-z", tree_id).split(b"\0")[:-1]


def names(result: tree.Result) -> dict[bytes, str]:
    """What was refused, and why."""
    return {one.path: one.reason for one in result.refused}


def content(made: Scene, path: bytes, result: tree.Result | None = None) -> bytes:
    """The new content of a path that changed."""
    return made.store.git("cat-file", "blob", made.changed(result)[path].new_id)


def landed(made: Scene, result: str | None = None, **options) -> str:
    """Land what the clone holds, or another tree; the commit."""
    told = {
        "message": message_of("do it", "as asked", [("Change", "1")]), "author": AGENT,
        "committer": PERSON, "branch": BRANCH, **options,
    }  # fmt: skip
    return land(made.repository, made.base, result or made.read().tree, made.store, **told)
