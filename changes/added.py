"""The lines a change adds, file by file, out of our own store: what every look at content reads.

A line is added when the result holds it more often than the base did. No diff is parsed, and no
attribute, suffix or suppression that came with the change decides what is looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from changes.own_paths import spelled
from changes.patches import ChangedPath
from changes.store import Store

FILE_MAX = 8 << 20  # bytes of one file that are looked at
SUBMODULE = "160000"
_BATCH = 32 << 20  # bytes read at once
_STRING = re.compile(rb"[\x20-\x7e\t]{6,}")
_WIDE = re.compile(rb"(?:[\x20-\x7e\t]\x00){6,}")  # as Windows writes text
_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


@dataclass(frozen=True, slots=True)
class Added:
    """One changed file that is in the result.

    Attributes:
        content: of the result, whole; text of another encoding as UTF-8.
        before: of the base, the same way; b"" for a new file.
        lines: number and text of what was added, without line ends; of a binary its strings,
            all under number 0.
        binary: no text in any encoding we know.
    """

    changed: ChangedPath
    content: bytes
    before: bytes
    binary: bool
    lines: Sequence[tuple[int, bytes]]


@dataclass(slots=True)
class Unread:
    """What was not looked at, in sentences."""

    reasons: list[str] = field(default_factory=list)


def read(store: Store, changed: Iterable[ChangedPath], unread: Unread) -> Iterator[Added]:
    """Each file of the result whose content is new there.

    What is too large, or not in the store, is written down in `unread`.
    """
    wanted = [each for each in changed if each.new_id and each.new_mode != SUBMODULE]
    wanted = [each for each in wanted if each.new_id != each.old_id or each.kind == "renamed"]
    sizes = store.sizes({_id for each in wanted for _id in (each.new_id, each.old_id) if _id})
    batch: list[ChangedPath] = []
    room = _BATCH
    for each in wanted:
        size = sizes.get(each.new_id)
        if size is None:
            unread.reasons.append(f"{spelled(each.path)}: its content is missing")
        elif size > FILE_MAX:
            unread.reasons.append(
                f"{spelled(each.path)}: {size / 2**20:,.0f} MB, and no file above "
                f"{FILE_MAX >> 20} MB is read"
            )
        else:
            batch.append(each)
            room -= size + sizes.get(each.old_id, 0)
        if room <= 0:
            yield from _batch(store, batch, sizes, unread)
            batch, room = [], _BATCH
    yield from _batch(store, batch, sizes, unread)


def _batch(
    store: Store, batch: Sequence[ChangedPath], sizes: dict[str, int], unread: Unread
) -> Iterator[Added]:
    """One file of the base that is too large to compare with counts as nothing: all is new."""
    ids = {each.new_id for each in batch}
    ids |= {each.old_id for each in batch if 0 <= sizes.get(each.old_id, -1) <= FILE_MAX}
    contents = dict(store.blobs(sorted(ids)))
    for each in batch:
        content = contents.get(each.new_id)
        if content is None:
            unread.reasons.append(f"{spelled(each.path)}: its content could not be read")
            continue
        yield added(each, content, contents.get(each.old_id, b""))


def added(changed: ChangedPath, content: bytes, before: bytes) -> Added:
    """What one file's new content adds to the one before. A renamed file counts as new."""
    if changed.kind == "renamed" or (changed.old_mode != changed.new_mode and _is_link(changed)):
        before = b""
    binary = is_binary(content)
    content, before = as_text(content), as_text(before)
    if binary:
        known = set(strings(before))
        found = [(0, each) for each in strings(content) if each not in known]
        return Added(changed, content, before, binary=True, lines=found)
    return Added(changed, content, before, binary=False, lines=list(_lines(content, before)))


def is_binary(content: bytes) -> bool:
    """A file with a NUL that is no text of two bytes a character."""
    return b"\0" in content and content[:2] not in _MARKS


def as_text(content: bytes) -> bytes:
    """A text of two bytes a character as UTF-8; anything else as it is."""
    encoding = _MARKS.get(content[:2])
    if encoding is None:
        return content
    return content[2:].decode(encoding, "replace").encode("utf-8", "replace")


def strings(content: bytes) -> Iterator[bytes]:
    """The runs of printable characters in a binary, of one byte and of two bytes each."""
    for found in _STRING.finditer(content):
        yield found[0]
    for found in _WIDE.finditer(content):
        yield found[0].replace(b"\0", b"")


def _is_link(changed: ChangedPath) -> bool:
    return "120000" in (changed.old_mode, changed.new_mode)


def _lines(content: bytes, before: bytes) -> Iterator[tuple[int, bytes]]:
    """Line ends do not count: turned ones make no line new."""
    left = Counter(line.rstrip(b"\r") for line in before.split(b"\n")) if before else Counter()
    pieces = content.split(b"\n")
    if pieces[-1] == b"":
        pieces.pop()
    for number, line in enumerate(pieces, 1):
        line = line.rstrip(b"\r")
        if left[line] > 0:
            left[line] -= 1
        else:
            yield number, line
