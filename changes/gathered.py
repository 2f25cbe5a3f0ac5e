"""What is to be in a result, path by path, whether it was read from files or from a commit."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

from changes.entries import Entry
from changes.names import folded
from changes.objects import tree_with
from changes.own_paths import is_ours
from changes.store import Store
from runs.visible import visible_name


class Gathered:
    """A result beside the base it began from.

    Attributes:
        found: mode and object id of each path that is in it.
        refused: what could not be taken, and why: the base stays as it was there.
    """

    def __init__(self, base: dict[bytes, Entry]) -> None:
        self._base = base
        self._directories = {directory for path in base for directory in above(path)}
        self.found: dict[bytes, tuple[str, str]] = {}
        self.refused: dict[bytes, str] = {}

    def refuse(self, path: bytes, reason: str) -> None:
        self.refused[path] = reason
        self.found.pop(path, None)

    def refuse_twins(self) -> None:
        """Refuse what is new and the same name as another one on some system."""
        names: dict[str, set[bytes]] = {}
        old = [path for path in self._base if path in self.found or self._kept(path)]
        for path in old:
            for part in (path, *above(path)):
                names.setdefault(folded(part), set()).add(part)
        for path in sorted(path for path in self.found if path not in self._base):
            for part in (*above(path), path):
                others = names.setdefault(folded(part), {part})
                if part not in others:
                    shown = visible_name(os.fsdecode(min(others)))
                    self.refuse(path, f"is the same name as {shown} on some systems")
                    break

    def tree(self, store: Store, base_tree: str) -> str:
        """The tree of it, made in the store. Raises GitError."""
        gone = (path for path in self._base if path not in self.found and not self._kept(path))
        put = {
            path: entry
            for path, entry in self.found.items()
            if path not in self._base or entry != (self._base[path].mode, self._base[path].id)
        }
        return tree_with(store, base_tree, gone, put)

    def _kept(self, path: bytes) -> bool:
        """Whether the base stays as it was at a path that was not found."""
        return is_ours(path) or is_below(path, self.refused)


def above(path: bytes) -> Iterator[bytes]:
    """The directories a path lies in, from the nearest one upward."""
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path


def is_below(path: bytes, places: Collection[bytes]) -> bool:
    """Whether a path is one of the places, or lies in one."""
    return bool(places) and (path in places or any(each in places for each in above(path)))
