"""Reading what an agent left for us under `.sanduk/` and `.sandkeep/`, as hostile as any file.

By descriptor, never through a link, with caps; nothing in the box is asked for a list or a copy.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from changes.own_paths import OWN, spelled
from runs import tree

ENTRIES_MAX = 200  # names of one directory that are looked at


@dataclass(frozen=True, slots=True)
class OwnFile:
    """One name in such a directory.

    Attributes:
        name: as `changes.own_paths` spells it, at most 255 characters.
        data: its content; None when it was not read.
        reason: why it was not read; "" when it was.
    """

    name: str
    data: bytes | None
    reason: str = ""


def within(clone: Path, directory: str, *, limit: int) -> Iterator[OwnFile]:
    """The files directly in `.sanduk/DIRECTORY` and `.sandkeep/DIRECTORY`, by name.

    Args:
        limit: bytes; a larger file is not read.
    """
    for own in OWN:
        with ExitStack() as stack:
            try:
                root = stack.enter_context(tree.opened(str(clone)))
                place = _entered(stack, root, own, directory)
            except OSError:
                continue  # it is not there, or is no directory
            with os.scandir(place) as entries:
                names = sorted(entry.name for entry in islice(entries, ENTRIES_MAX + 1))
            for name in names[:ENTRIES_MAX]:
                yield _file(place, name, limit)
            if len(names) > ENTRIES_MAX:
                shown = f"{os.fsdecode(own)}/{directory}"
                yield OwnFile(shown, None, f"more than {ENTRIES_MAX} names: the rest was not read")


def one(clone: Path, name: str, *, limit: int) -> OwnFile | None:
    """The file `.sanduk/NAME`, else `.sandkeep/NAME`; None when there is neither."""
    for own in OWN:
        with ExitStack() as stack:
            try:
                root = stack.enter_context(tree.opened(str(clone)))
                place = _entered(stack, root, own)
                os.stat(name, dir_fd=place, follow_symlinks=False)
            except OSError:
                continue
            return _file(place, name, limit)
    return None


def _entered(stack: ExitStack, root: int, *parts: bytes | str) -> int:
    place = root
    for part in parts:
        place = tree.below(place, os.fsdecode(part))
        stack.callback(os.close, place)
    return place


def _file(place: int, name: str, limit: int) -> OwnFile:
    shown = spelled(os.fsencode(name))[:255]
    try:
        found = tree.read_file(place, name, limit=limit)
    except tree.NotARegularFile:
        return OwnFile(shown, None, "it is no regular file")
    except OSError as exc:
        return OwnFile(shown, None, f"it cannot be read: {exc.strerror}")
    if found.cut:
        return OwnFile(shown, None, f"it is larger than {limit >> 10:,} KiB")
    return OwnFile(shown, found.data)
