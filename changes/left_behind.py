"""What a person might expect in an agent's clone and will not find, in sentences."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from changes.entries import Entry
from changes.git import GitError, git, line
from changes.own_paths import is_ours
from changes.repository import Repository
from changes.store import Store
from runs.visible import visible_name

_SHOWN = 3
_POINTER = b"version https://git-lfs.github.com/spec/"
_POINTER_SIZES = range(80, 1024)  # bytes, by the specification of the pointer


def sentences(found: Repository, top: Path, entries: Sequence[Entry], tree: str) -> Iterator[str]:
    """One for each thing that stays behind. `top` is the whole work tree's directory."""
    if found.asked.resolve() != top.resolve():
        yield f"{_path(found.asked)} lies in {_path(top)}: the agent gets that whole repository"
    modules = [entry.path for entry in entries if entry.is_repository]
    if modules:
        yield f"{_some(modules, 'submodule')}: the directory is there and empty"
    pointers = [entry.path for entry in _pointers(found.git_dir, entries)]
    if pointers:
        yield f"{_some(pointers, 'file')} kept in Git LFS: the agent sees the pointer only"
    own = [entry.path for entry in entries if is_ours(entry.path)]
    if own:
        yield f"{_some(own, 'tracked file')}: nothing below .sanduk/ or .sandkeep/ can be changed"
    if not found.bare:
        yield from _of_the_checkout(found, top, tree)


def _of_the_checkout(found: Repository, top: Path, tree: str) -> Iterator[str]:
    words = ("config", "--type=bool", "core.sparseCheckout")
    if line(git(*words, git_dir=found.git_dir, codes=(0, 1))) == "true":
        yield "the sparse checkout does not count: the agent gets every file of the commit"
    try:
        changed, untracked = _dirty(found, top, tree)
    except GitError as exc:
        yield f"whether the checkout holds more than was committed could not be found out: {exc}"
        return
    if changed:
        yield f"{_some(changed, 'file')} with changes that are not committed"
    if untracked:
        yield f"{_some(untracked, 'untracked path')}"


def _dirty(found: Repository, top: Path, tree: str) -> tuple[list[bytes], list[bytes]]:
    """What differs from the base in the checkout, and what is not tracked.

    Asked through a git directory of our own: git would run the filters, and the monitor, that
    the repository's configuration names.
    """
    index, exclude = found.git_dir / "index", found.common_dir / "info" / "exclude"
    with tempfile.TemporaryDirectory() as scratch:
        ours = Path(scratch) / "ours.git"
        formats = f"--object-format={found.object_format}"
        git("init", "--quiet", "--bare", "--template=", formats, ours)
        if exclude.is_file():
            (ours / "info").mkdir(exist_ok=True)
            shutil.copyfile(exclude, ours / "info" / "exclude")
        env = {
            "GIT_OBJECT_DIRECTORY": str(found.common_dir / "objects"),
            "GIT_WORK_TREE": str(top),
            "GIT_INDEX_FILE": str(Path(scratch) / "index"),
        }
        if index.is_file():
            # with its time: git looks closely at files that are as old as their index
            shutil.copy2(index, env["GIT_INDEX_FILE"])

        conversion = ("config", "core.autocrlf")
        said = line(git(*conversion, git_dir=found.git_dir, owner=True, codes=(0, 1)))
        settings = {"core.bare": "false", "core.autocrlf": said or "false"}

        def ask(*words: str) -> set[bytes]:
            return set(git(*words, git_dir=ours, cwd=top, env=env, settings=settings).split(b"\0"))

        staged = ask("diff-index", "--cached", "--name-only", "-z", tree)
        edited = ask("ls-files", "-z", "--modified", "--deleted")
        new = ask(
            "ls-files", "-z", "--others", "--exclude-standard", "--directory",
            "--no-empty-directory",
        )  # fmt: skip
    return sorted((staged | edited) - {b""}), sorted(new - {b""})


def _pointers(git_dir: Path, entries: Sequence[Entry]) -> Iterator[Entry]:
    """Pointers of Git LFS, looked for only where some attributes mention it."""
    attributes = [e for e in entries if e.path.split(b"/")[-1] == b".gitattributes"]
    if not any(b"filter=lfs" in data for _, data in _contents(git_dir, attributes)):
        return
    files = [entry for entry in entries if entry.mode.startswith("100")]
    sizes = Store(git_dir).sizes(entry.id for entry in files)
    small = [entry for entry in files if sizes.get(entry.id) in _POINTER_SIZES]
    for entry, data in _contents(git_dir, small):
        if data.startswith(_POINTER):
            yield entry


def _contents(git_dir: Path, entries: Sequence[Entry]) -> Iterator[tuple[Entry, bytes]]:
    wanted = [entry for entry in entries if entry.mode.startswith("100")]
    contents = Store(git_dir).blobs(entry.id for entry in wanted)
    for entry, (_, data) in zip(wanted, contents, strict=True):
        yield entry, data


def _some(paths: Sequence[bytes], what: str) -> str:
    shown = ", ".join(visible_name(os.fsdecode(path)) for path in paths[:_SHOWN])
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"{len(paths)} {what}{'' if len(paths) == 1 else 's'} ({shown}{more})"


def _path(path: Path) -> str:
    return visible_name(str(path))
