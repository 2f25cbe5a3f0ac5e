"""Making the clone an agent works in, before any agent was there.

Its objects are a copy of the bundle's alone, so that nothing it does to them reaches ours, and it
shows no other attempt. Its files are written by our git with our attributes: byte for byte what
the tree holds, with no filter and no hook.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from changes.bundle import Provided
from changes.git import git, line
from changes.store import ATTRIBUTES, Store, object_id, write_whole


def make(
    store: Store,
    provided: Provided,
    directory: Path,
    *,
    branch: str,
    author: tuple[str, str],
    tree: str | None = None,
    commits: Sequence[tuple[str, str]] = (),
    owner: tuple[int, int] | None = None,
) -> None:
    """Fill an empty directory with a clone that stands on a branch at the base commit.

    Args:
        branch: the short name of the branch to make.
        author: name and mail address the agent's own commits carry.
        tree: what the files are, where they are not the base's: an attempt that is revised.
        commits: tree and message of those that the branch has on the base, the oldest first.
        owner: user and group everything is given to; needs root.
    Raises:
        GitError: the bundle is not readable, or the tree is not in the store.
    """
    ours = directory / ".git"
    base = object_id(provided.base_commit)
    words = ("init", "--quiet", "--template=", f"--object-format={provided.object_format}")
    git(*words, f"--initial-branch={branch}", directory, cwd=directory)
    (ours / "info").mkdir(exist_ok=True)
    (ours / "info" / "attributes").write_text(ATTRIBUTES)
    if provided.shallow:
        write_whole(ours / "shallow", "".join(f"{one}\n" for one in provided.shallow))
    git("bundle", "unbundle", provided.bundle, git_dir=ours)
    start = _brought(store, ours, base, commits, author) if commits else base
    git("update-ref", f"refs/heads/{branch}", start, git_dir=ours)
    for name, value in zip(("user.name", "user.email"), author, strict=True):
        git("config", name, value, git_dir=ours)
    if tree is None or tree == (commits[-1][0] if commits else provided.base_tree):
        git("read-tree", "--reset", "-u", start, git_dir=ours, cwd=directory)
    else:
        _write_files(store, tree, directory)
        git("read-tree", start, git_dir=ours, cwd=directory)
        git("update-index", "-q", "--refresh", git_dir=ours, cwd=directory, codes=(0, 1))
    if owner is not None:
        _give(directory, *owner)


def _brought(
    store: Store,
    ours: Path,
    base: str,
    commits: Sequence[tuple[str, str]],
    author: tuple[str, str],
) -> str:
    """The last of these commits, made in the store and copied into the clone."""
    named = dict(zip(("NAME", "EMAIL"), author, strict=True))
    who = {
        f"GIT_{role}_{key}": said for role in ("AUTHOR", "COMMITTER") for key, said in named.items()
    }
    at = base
    for tree, message in commits:
        words = ("commit-tree", object_id(tree), "-p", at)
        at = line(store.git(*words, env=who, stdin=message.encode(errors="replace")))
    with tempfile.TemporaryFile(dir=store.path) as pack:
        asked = f"{at}\n^{base}\n".encode()
        store.git("pack-objects", "--revs", "--stdout", "--quiet", stdin=asked, stdout=pack)
        pack.seek(0)
        git("index-pack", "--stdin", git_dir=ours, stdin=pack)
    return at


def _write_files(store: Store, tree: str, directory: Path) -> None:
    with tempfile.TemporaryDirectory(dir=store.path) as scratch:
        store.git(
            "read-tree", "--reset", "-u", object_id(tree),
            cwd=directory,
            env={"GIT_INDEX_FILE": str(Path(scratch) / "index"), "GIT_WORK_TREE": str(directory)},
            settings={"core.bare": "false"},
        )  # fmt: skip


def _give(directory: Path, user: int, group: int) -> None:
    for place, _, files, descriptor in os.fwalk(directory, follow_symlinks=False):
        for name in (".", *files):
            os.chown(name, user, group, dir_fd=descriptor, follow_symlinks=False)
        del place
