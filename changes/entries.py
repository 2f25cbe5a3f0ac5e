"""What a tree of git holds, as one list."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from changes.git import git


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a tree, whole path.

    Attributes:
        mode: as git writes it, "100644".
    """

    path: bytes
    mode: str
    id: str

    @property
    def is_repository(self) -> bool:
        return self.mode == "160000"


def listing(git_dir: Path, tree: str) -> list[Entry]:
    """Every file, link and submodule of a tree; whether the files are there is not looked at."""
    found = []
    for record in git("ls-tree", "-r", "-z", "--full-tree", tree, git_dir=git_dir).split(b"\0")[
        :-1
    ]:
        head, path = record.split(b"\t", 1)
        mode, _, name = head.decode().split(" ")
        found.append(Entry(path, mode, name))
    return found
