"""Finding a repository of this host, and whether we may use it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from changes.git import GitError, git, line, version
from changes.store import FORMATS
from runs.refusal import Refusal
from runs.visible import visible, visible_name


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository of this host that was found, and may be used.

    Attributes:
        asked: the directory it was looked for in.
        git_dir: of this work tree.
        common_dir: what all its work trees share.
    """

    asked: Path
    git_dir: Path
    common_dir: Path
    bare: bool
    object_format: str

    def top(self) -> Path:
        """The top of the work tree; a bare repository itself."""
        if self.bare:
            return self.git_dir
        return Path(line(git("rev-parse", "--show-toplevel", cwd=self.asked)))


def find(repository: Path) -> Repository:
    """The repository that a directory is, or lies in.

    Raises:
        Refusal: it is none, belongs to another account, or is of a kind nobody knows.
    """
    version()
    shown = visible_name(str(repository))
    if not repository.is_dir():
        raise Refusal(f"{shown} is no directory: name the directory of a git repository")
    words = ("--show-object-format", "--is-bare-repository", "--is-inside-work-tree")
    try:
        # the path comes last: it may hold a line feed
        said = line(git("rev-parse", *words, "--absolute-git-dir", cwd=repository))
    except GitError as exc:
        if exc.code is None or b"not a git repository" not in exc.errors:
            raise Refusal(f"{shown} cannot be read as a git repository: {exc}") from None
        raise Refusal(
            f"{shown} is no git repository: run `git init` in it and commit what the agent may see"
        ) from None
    named, bare, inside, path = said.split("\n", 3)
    if "true" not in (bare, inside):
        raise Refusal(f"{shown} is a repository's own git directory: name its work tree")
    git_dir = Path(path)
    found = Repository(repository, git_dir, _common(git_dir), bare == "true", named)
    _require_ours(found)
    if named not in FORMATS:
        raise Refusal(f"{shown} stores its objects as {visible(named)}, which is not known here")
    return found


def _common(git_dir: Path) -> Path:
    """As gitrepository-layout(5) has it: a linked work tree names the directory it shares."""
    file = git_dir / "commondir"
    if not file.is_file():
        return git_dir
    return (git_dir / os.fsdecode(file.read_bytes()).removesuffix("\n")).resolve()


def _require_ours(found: Repository) -> None:
    for directory in {found.git_dir, found.common_dir}:
        owner = directory.stat().st_uid
        if owner != os.geteuid():
            raise Refusal(
                f"{visible_name(str(directory))} belongs to account {owner}, this runs as "
                f"{os.geteuid()}: run it as the account that owns the repository"
            )
