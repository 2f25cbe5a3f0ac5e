"""What a tree of git holds, as one list."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from changes.git import GitError, git


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a tree, whole path.

    Attributes:
        mode: as git writes it, "100644".
        size: in bytes; 0 for what is no file.
    """

    path: bytes
    mode: str
    id: str
    size: int = 0

    @property
    def is_repository(self) -> bool:
        return self.mode == "160000"


def listing(git_dir: Path, tree: str, *, sizes: bool = True) -> list[Entry]:
    """Every file, link and submodule of a tree. Raises GitError when one is missing."""
    words = ["ls-tree", "-r", "-z", "--full-tree", *(["--long"] if sizes else []), tree]
    found = []
    for record in git(*words, git_dir=git_dir).split(b"\0")[:-1]:
        head, path = record.split(b"\t", 1)
        mode, _, name, *size = head.decode().split()
        if size == ["BAD"]:
            raise GitError(f"object {name} is missing", errors=b"missing")
        found.append(Entry(path, mode, name, 0 if size in ([], ["-"]) else int(size[0])))
    return found
