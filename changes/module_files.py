"""Files git itself reads out of a tree: refused where git's own check finds them hostile.

A `.gitmodules` with an option for an address, or a `.gitattributes` with an endless line, would
make the finished commit fail `git fsck`, and every server that runs it refuse the push.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from changes.entries import Entry
from changes.git import GitError, line
from changes.names import folded, is_module_file
from changes.store import Store

_ONE_BY_ONE = 50
_REASON = "does not pass git's own check"

Found = Mapping[bytes, tuple[str, str]]  # path: mode, object id


def broken(store: Store, base: Mapping[bytes, Entry], found: Found) -> dict[bytes, str]:
    """The new or changed ones that do not pass, and why."""
    asked = {
        path: name
        for path, (mode, name) in found.items()
        if mode.startswith("100") and _read_by_git(path)
        if path not in base or base[path].id != name
    }
    if not asked or not _complaint(store, list(asked.items())):
        return {}
    if len(asked) > _ONE_BY_ONE:
        return dict.fromkeys(asked, _REASON)
    answers = {path: _complaint(store, [(path, name)]) for path, name in asked.items()}
    return {path: f"{_REASON}: {said}" for path, said in answers.items() if said}


def _read_by_git(path: bytes) -> bool:
    return is_module_file(path) or folded(path.rsplit(b"/", 1)[-1]) == ".gitattributes"


def _complaint(store: Store, files: Sequence[tuple[bytes, str]]) -> str:
    """What git's check says of files of these names; "" when nothing."""
    objects = []
    for path, name in files:
        kind = ".gitmodules" if is_module_file(path) else ".gitattributes"
        told = f"100644 blob {name}\t{kind}\0".encode()
        objects += [name, line(store.git("mktree", "-z", stdin=told))]
    with tempfile.TemporaryDirectory(dir=store.path) as scratch:
        pack = Path(scratch) / "files.pack"
        with pack.open("wb") as file:
            listed = "".join(f"{one}\n" for one in dict.fromkeys(objects)).encode()
            store.git("pack-objects", "--stdout", "--quiet", stdin=listed, stdout=file)
        try:
            store.git("index-pack", "--fsck-objects", "-o", Path(scratch) / "files.idx", pack)
        except GitError as exc:
            if exc.code is None:
                raise
            return str(exc).removeprefix("git index-pack: ").replace("\n", " ")
    return ""
