"""What two snapshots differ in: entries first, then the lines of texts.

Everything compared is hostile. The work is bounded; what is printed goes through `visible`.
"""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from assistants.memory.manifest import Entry, Manifest
from assistants.memory.store import Store
from runs import secret_scan
from runs.hidden import Hiding
from runs.visible import visible, visible_name

Change = Literal["added", "removed", "changed", "mode", "type", "renamed"]

TEXT_BYTES = 256 * 1024  # of a larger file only its size is told
TEXT_LINES = 400  # of one file's difference
ALL_LINES = 4000  # of all of them
LINE = 400  # characters
CONTEXT = 3
# a matcher may compare each line with each: beyond so many pairs, old lines go and new ones come
_PAIRS = 4_000_000


@dataclass(frozen=True, slots=True)
class Difference:
    """One entry that is not the same.

    Args:
        change: "changed" is another content, and "mode" another mode with the same one.
        old: None when it was added.
        new: None when it was removed.
    """

    change: Change
    old: Entry | None
    new: Entry | None

    @property
    def name(self) -> str:
        """Where it is, or was; hostile."""
        entry = self.new or self.old
        return entry.name if entry else ""

    def line(self) -> str:
        """In one line, safe to print."""
        name = visible_name(self.name, limit=1000)
        if self.change == "renamed" and self.old:
            name = f"{visible_name(self.old.name, limit=1000)} -> {name}"
        return f"{self.change:<8} {name}{self._detail()}"

    def _detail(self) -> str:
        old, new = self.old, self.new
        told = []
        if old and new and self.change == "type":
            told.append(f"{old.kind} -> {new.kind}")
        entry = new or old
        if entry and entry.kind == "link":
            told.append(f"link to {visible_name(_text(entry.target), limit=300)}")
        elif entry and entry.kind == "directory" and not (old and new):
            told.append("directory")
        elif old and new and old.size != new.size:
            told.append(f"{old.size:,} -> {new.size:,} bytes")
        elif entry and entry.kind == "file" and self.change != "mode":
            told.append(f"{entry.size:,} bytes")
        if old and new and old.kind == new.kind and old.mode != new.mode:
            told.append(f"mode {old.mode:04o} -> {new.mode:04o}")
        return f"  ({', '.join(told)})" if told else ""


def compare(old: Manifest, new: Manifest) -> list[Difference]:
    """Every difference, ordered by the path it has now (or had)."""
    before, after = old.by_path(), new.by_path()
    gone = [entry for path, entry in before.items() if path not in after]
    come = [entry for path, entry in after.items() if path not in before]
    found = list(_renamed(gone, come))
    old_names = {each.old.path for each in found if each.old}
    new_names = {each.new.path for each in found if each.new}
    found += [Difference("removed", entry, None) for entry in gone if entry.path not in old_names]
    found += [Difference("added", None, entry) for entry in come if entry.path not in new_names]
    for path, entry in after.items():
        earlier = before.get(path)
        if earlier is not None and earlier != entry:
            found.append(Difference(_change(earlier, entry), earlier, entry))
    return sorted(found, key=lambda each: ((each.new or each.old or _NOTHING).path, each.change))


_NOTHING = Entry(b"", "file", 0)


def _change(old: Entry, new: Entry) -> Change:
    if old.kind != new.kind:
        return "type"
    same = (old.sha256, old.target) == (new.sha256, new.target)
    return "mode" if same else "changed"


def _renamed(gone: list[Entry], come: list[Entry]) -> Iterator[Difference]:
    """Files under new names: the same content, which is not empty."""
    where: dict[str, list[Entry]] = defaultdict(list)
    for entry in sorted(gone, reverse=True):
        if entry.kind == "file" and entry.size:
            where[entry.sha256].append(entry)
    for entry in sorted(come):
        if entry.kind == "file" and where.get(entry.sha256):
            yield Difference("renamed", where[entry.sha256].pop(), entry)


def held() -> Hiding:
    """What takes every secret that this host holds out of a text."""
    return Hiding(secret_scan.held_secrets()[0].values())


class Texts:
    """Differences in lines, within bounds that hold for all of them together.

    Secrets that this host holds are taken out of what is shown; the memory itself stays as it is.
    """

    def __init__(self, store: Store, hiding: Hiding | None = None) -> None:
        self._store = store
        self._hiding = hiding or held()
        self._pairs = _PAIRS
        self._lines = ALL_LINES

    def head(self, difference: Difference) -> str:
        """One difference in one line, safe to print."""
        return self._hiding.text(difference.line())

    def lines(self, difference: Difference) -> list[str]:
        """The lines of one difference, safe to print; a sentence where there is no text."""
        if difference.change not in ("added", "removed", "changed", "type"):
            return []
        if not any(each and each.kind == "file" for each in (difference.old, difference.new)):
            return []
        if self._lines <= 0:
            return ["(not shown: there are too many differences)"]
        if any(each and each.size > TEXT_BYTES for each in (difference.old, difference.new)):
            return [f"(not shown: more than {TEXT_BYTES // 1024} KB)"]
        old, new = self._text(difference.old), self._text(difference.new)
        if old is None or new is None:
            return ["(binary)"]
        return self._shown(old, new)

    def between(self, old: str, new: str) -> list[str]:
        """What is different between two texts, safe to print."""
        if max(len(old), len(new)) > TEXT_BYTES:
            return [f"(not shown: more than {TEXT_BYTES // 1024} KB)"] if old != new else []
        return self._shown(old.split("\n"), new.split("\n"))

    def _shown(self, old: list[str], new: list[str]) -> list[str]:
        lines = (self._hiding.text(line) for line in self._unified(old, new))
        shown = [visible(line, limit=LINE) for line in lines]
        limit = min(TEXT_LINES, self._lines)
        if len(shown) > limit:
            shown = [*shown[:limit], f"({len(shown) - limit:,} more lines are not shown)"]
        self._lines -= len(shown)
        return shown

    def _text(self, entry: Entry | None) -> list[str] | None:
        """Lines of a text; none for what is no file, and None for what is no text."""
        if entry is None or entry.kind != "file":
            return []
        data = b"".join(self._store.content(entry.sha256))
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None
        if "\0" in text:
            return None
        lines = text.split("\n")
        if not lines[-1]:
            return lines[:-1]
        return [*lines[:-1], f"{lines[-1]}  (no newline at the end)"]

    def _unified(self, old: list[str], new: list[str]) -> list[str]:
        start, end = _shared(old, new)
        pairs = (len(old) - start - end) * (len(new) - start - end)
        if pairs <= self._pairs:
            self._pairs -= pairs
            context = max(start - CONTEXT, 0)
            found = difflib.unified_diff(
                old[context : len(old) - max(end - CONTEXT, 0)],
                new[context : len(new) - max(end - CONTEXT, 0)],
                lineterm="",
                n=CONTEXT,
            )
            return [_moved(line, context) for line in list(found)[2:]]
        gone, come = old[start : len(old) - end], new[start : len(new) - end]
        head = f"@@ -{start + 1},{len(gone)} +{start + 1},{len(come)} @@"
        return [head, *(f"-{line}" for line in gone), *(f"+{line}" for line in come)]


def _shared(old: list[str], new: list[str]) -> tuple[int, int]:
    """How many lines at the beginning and at the end are the same."""
    most = min(len(old), len(new))
    start = 0
    while start < most and old[start] == new[start]:
        start += 1
    end = 0
    while end < most - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, end


def _moved(line: str, by: int) -> str:
    """A hunk's head with the lines that were left out before it counted."""
    if not line.startswith("@@ ") or not by:
        return line
    _, old, new, _ = line.split(" ")
    return f"@@ {_later(old, by)} {_later(new, by)} @@"


def _later(span: str, by: int) -> str:
    first, comma, count = span[1:].partition(",")
    return f"{span[0]}{int(first) + by}{comma}{count}"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
