"""The lines that differ between two sides of some files, as records and never as a patch's text.

The files are laid side by side in two trees of our own making, each under its number: no name an
agent chose is ever in what is parsed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from changes.git import GitError, line
from changes.patches import ChangedPath
from changes.store import Store, object_id

PATCH_MAX = 64 << 20  # bytes that git may print
_SUBMODULE = "160000"
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--no-renames")
_SECTION = re.compile(rb"diff --git a/(\d+) b/(\d+)")
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)", re.DOTALL)

Kind = Literal["same", "add", "del"]


@dataclass(slots=True)
class Line:
    """One line of a difference.

    Attributes:
        old, new: its number on either side, from 1; 0 where it is not.
        text: without its line feed; hostile, bytes that are no UTF-8 as surrogates.
        is_last: nothing follows it, not even a line feed.
    """

    kind: Kind
    old: int
    new: int
    text: str
    is_last: bool = False


@dataclass(slots=True)
class Hunk:
    """Lines that stand together. `around` is what git takes for their heading; hostile."""

    old: int
    new: int
    around: str
    lines: list[Line]


def of_files(
    store: Store, changed: Sequence[ChangedPath], *, context: int = 3, limit_bytes: int = PATCH_MAX
) -> list[list[Hunk]]:
    """The hunks of each file, in their order; none where it is binary or only moved.

    Two processes, however many files there are.

    Raises:
        GitError: a file is not in the store, or there is more than `limit_bytes` of it.
    """
    found: list[list[Hunk]] = [[] for _ in changed]
    sides = [
        _tree(store, [(each.old_mode, each.old_id) for each in changed]),
        _tree(store, [(each.new_mode, each.new_id) for each in changed]),
    ]
    said = store.git(
        "diff-tree", "-p", f"-U{context:d}", *_PLAIN, "--diff-algorithm=myers", *sides,
        limit_bytes=limit_bytes,
    )  # fmt: skip
    for number, hunks in _sections(said):
        found[number] = hunks
    for each, hunks in zip(changed, found, strict=True):
        if _SUBMODULE in (each.old_mode, each.new_mode):
            hunks.insert(0, _of_submodule(each))
    return found


def _tree(store: Store, entries: Sequence[tuple[str, str]]) -> str:
    """A tree that holds each file under its number; links are compared as the text they are."""
    records = [
        f"100644 blob {object_id(thing)}\t{number:06d}\0"
        for number, (mode, thing) in enumerate(entries)
        if thing and mode != _SUBMODULE
    ]
    return object_id(line(store.git("mktree", "-z", stdin="".join(records).encode())))


def _of_submodule(changed: ChangedPath) -> Hunk:
    sides: tuple[tuple[Kind, str, str], ...] = (
        ("del", changed.old_mode, changed.old_id),
        ("add", changed.new_mode, changed.new_id),
    )
    lines = [
        Line(kind, int(kind == "del"), int(kind == "add"), f"submodule commit {thing}")
        for kind, mode, thing in sides
        if mode == _SUBMODULE
    ]
    return Hunk(1, 1, "", lines)


def _sections(said: bytes) -> Iterator[tuple[int, list[Hunk]]]:
    number, hunks = -1, list[Hunk]()
    words = iter(said.split(b"\n"))
    for word in words:
        if section := _SECTION.fullmatch(word):
            if number >= 0:
                yield number, hunks
            number, hunks = int(section[1]), []
        elif head := _HUNK.fullmatch(word):
            hunks.append(_hunk(head, words))
        elif word.startswith(b"\\") and hunks and hunks[-1].lines:
            hunks[-1].lines[-1].is_last = True  # behind the last line of a hunk
    if number >= 0:
        yield number, hunks


def _hunk(head: re.Match[bytes], words: Iterator[bytes]) -> Hunk:
    """The lines that the head counts; what they hold is never taken for anything else."""
    old, new = int(head[1]), int(head[3])
    made = Hunk(old, new, text_of(head[5]), [])
    olds, news = (int(head[each]) if head[each] is not None else 1 for each in (2, 4))
    while olds or news:
        word = next(words, None)
        if word is None:
            raise GitError("git diff-tree ended within a file")
        sign = word[:1]
        if sign == b"\\":
            made.lines[-1].is_last = True
            continue
        text = text_of(word[1:])
        if sign == b"+":
            made.lines.append(Line("add", 0, new, text))
        elif sign == b"-":
            made.lines.append(Line("del", old, 0, text))
        elif sign == b" ":
            made.lines.append(Line("same", old, new, text))
        else:
            raise GitError(f"git diff-tree said {word[:80]!r}")
        old, olds = old + (sign != b"+"), olds - (sign != b"+")
        new, news = new + (sign != b"-"), news - (sign != b"-")
    return made


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
