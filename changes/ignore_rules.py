"""What the base commit's own `.gitignore` files leave out; no other rule counts."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from changes.entries import Entry
from changes.git import GitError
from changes.store import Store

_FIELDS = 4  # source, line, pattern, path


class IgnoreRules:
    """Asks git about paths that need not exist, in a directory that holds the rules only."""

    def __init__(self, store: Store, directory: Path) -> None:
        self._store = store
        self._directory = directory

    def ignored(self, directories: Sequence[bytes], files: Sequence[bytes]) -> set[bytes]:
        """Which of these are left out, by a rule of their own or by one of a directory above."""
        for path in directories:
            # a rule that ends in a slash is about directories: git looks at what stands there
            with contextlib.suppress(FileExistsError, NotADirectoryError):
                os.makedirs(os.fsencode(self._directory) + b"/" + path)  # noqa: PTH103
        asked = [*directories, *files]
        if not asked:
            return set()
        said = self._store.git(
            "check-ignore", "--no-index", "--stdin", "-z", "--verbose", "--non-matching",
            cwd=self._directory,
            env={"GIT_WORK_TREE": str(self._directory), "GIT_LITERAL_PATHSPECS": "0"},
            settings={"core.bare": "false"},
            # a name may begin with a colon, which would mean something else
            stdin=b"".join(b"./" + path + b"\0" for path in asked),
            codes=(0, 1),
        )  # fmt: skip
        fields = said.split(b"\0")[:-1]
        if len(fields) != _FIELDS * len(asked):
            raise GitError("git check-ignore did not answer for every path")
        found = set()
        for number, path in enumerate(asked):
            source, _, pattern, _ = fields[_FIELDS * number : _FIELDS * (number + 1)]
            if source and not pattern.startswith(b"!"):
                found.add(path)
        return found


@contextmanager
def of_base(store: Store, entries: Sequence[Entry]) -> Iterator[IgnoreRules]:
    """The rules of these entries of a base tree. A `.gitignore` that is a link has none."""
    wanted = {
        entry.path: entry.id
        for entry in entries
        if entry.path.rsplit(b"/", 1)[-1] == b".gitignore" and entry.mode.startswith("100")
    }
    contents = dict(store.blobs(sorted(set(wanted.values()))))
    with tempfile.TemporaryDirectory() as scratch:
        for path, name in wanted.items():
            file = Path(scratch, os.fsdecode(path))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(contents[name])
        yield IgnoreRules(store, Path(scratch))
