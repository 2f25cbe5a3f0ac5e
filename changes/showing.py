"""What of an attempt stands on a page: which files, which of their lines, and what is left out.

However large a change is, a page is not: files come in parts, large ones have a page of their own,
and whatever is not shown is said. The whole is the patch, as a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.utils.safestring import SafeString

from changes import comparing, diffs, patches, rendering
from changes.colours import Colours
from changes.models import Attempt, RiskFlag
from changes.own_paths import spelled
from changes.patches import ChangedPath
from changes.rendering import Look
from changes.store import Store

FILES = 100  # of one part
LINES = 1200  # of one file that stands among others
PART_LINES = 5000
PART_BYTES = 24 << 20  # of both sides of all files that are compared for a part
OWN_LINES = 20_000  # of a file on its own page
OWN_BYTES = 24 << 20
OPEN_LINES = 400  # a file with more is folded
WHOLE = 1_000_000  # lines around a change: all of the file
_LOCKS = {
    "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "poetry.lock", "uv.lock", "cargo.lock",
    "gemfile.lock", "composer.lock", "go.sum", "flake.lock", "requirements.lock",
}  # fmt: skip
_MODES = {
    "100644": "a file", "100755": "a program", "120000": "a link", "160000": "a submodule",
    "000000": "nothing",
}  # fmt: skip


@dataclass(slots=True)
class File:
    """One file of a part, as the page needs it.

    Attributes:
        number: among all that differ, from 1.
        mark: the same for the same name and content, in whatever attempt: what was viewed.
        whole: what the attempt changes of it, where only a part of that is shown.
        words: what became of it since another attempt; "" where none is compared with.
        commit: the one of a series whose files these are; 0: what the whole comes to.
        rows: its lines; empty when `why` says why there are none.
        beside: flags that stand at no line that is shown.
    """

    number: int
    changed: ChangedPath
    path: str
    flags: list[RiskFlag]
    rows: SafeString = field(default_factory=SafeString)
    why: str = ""
    is_large: bool = False
    is_open: bool = True
    beside: list[RiskFlag] = field(default_factory=list)
    whole: ChangedPath | None = None
    words: str = ""
    commit: int = 0

    @property
    def was(self) -> str:
        return spelled(self.changed.old_path) if self.changed.old_path is not None else ""

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def mark(self) -> str:
        each = self.whole or self.changed
        told = f"{self.path}\0{each.old_id}\0{each.new_id}\0{each.old_mode}\0{each.new_mode}"
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    @property
    def modes(self) -> str:
        """What it was and is, where that is not the same."""
        old, new = self.changed.old_mode, self.changed.new_mode
        if old == new or (self.changed.kind in ("added", "deleted") and "100644" in (old, new)):
            return ""
        return f"{_MODES.get(old, old)} → {_MODES.get(new, new)}"


@dataclass(slots=True)
class Part:
    """Some of the files of an attempt.

    Attributes:
        many: how many files there are in all that fit what was looked for.
        number, last: which part this is, and of how many; from 1.
        where: of the flags' paths, the number of the file and of its part.
        same: how many files are as they were in the attempt that is compared with.
    """

    files: list[File]
    many: int
    number: int
    last: int
    find: str
    where: dict[str, tuple[int, int]]
    same: int = 0

    @property
    def before(self) -> int:
        """The part before this one; 0 for none."""
        return self.number - 1

    @property
    def after(self) -> int:
        return self.number + 1 if self.number < self.last else 0

    @property
    def folders(self) -> list[tuple[str, list[File]]]:
        """The files by the directory they are in, in their order."""
        found: dict[str, list[File]] = {}
        for file in self.files:
            found.setdefault(file.folder, []).append(file)
        return list(found.items())


def part(
    store: Store, attempt: Attempt, flags: Sequence[RiskFlag], look: Look, *,
    number: int = 1, find: str = "",
) -> Part:  # fmt: skip
    """One part of what differs.

    Args:
        find: only files with this in their path.
    Raises:
        GitError: the store cannot be read.
    """
    everything = patches.changed_paths(store, attempt.base_tree, attempt.tree)
    by_path = _by_path(flags)
    numbered = [(at, each) for at, each in enumerate(everything, 1)]
    if find:
        numbered = [(at, each) for at, each in numbered if find in spelled(each.path)]
    last = max(-(-len(numbered) // FILES), 1)
    number = min(max(number, 1), last)
    chosen = numbered[(number - 1) * FILES : number * FILES]
    files = [_file(at, each, by_path) for at, each in chosen]
    _show(store, files, look, _fitting(store, files))
    where = {
        path: (at, -(-at // FILES))
        for at, each in enumerate(everything, 1)
        if (path := spelled(each.path)) in by_path
    }
    return Part(files, len(numbered), number, last, find, where)


def one(
    store: Store, attempt: Attempt, flags: Sequence[RiskFlag], look: Look, *,
    number: int, whole: bool = False,
) -> File | None:  # fmt: skip
    """One file by its number; None when there are not so many. Raises GitError as `part` does."""
    everything = patches.changed_paths(store, attempt.base_tree, attempt.tree)
    if not 1 <= number <= len(everything):
        return None
    file = _file(number, everything[number - 1], _by_path(flags))
    return _alone(store, file, look, whole=whole)


def _alone(store: Store, file: File, look: Look, *, whole: bool) -> File:
    """A file with its lines on a page of its own."""
    lines = file.changed.added_lines + file.changed.deleted_lines
    file.is_open = True
    if why := _without_lines(store, file.changed):
        file.why = why
    elif lines > OWN_LINES or _bytes(store, [file])[file.number] > OWN_BYTES:
        file.why = "It is too large for a page: the patch holds it."
    else:
        _show(store, [file], look, [file], context=WHOLE if whole else 3, most=OWN_LINES)
    return file


def since(
    store: Store, earlier: Attempt, attempt: Attempt, flags: Sequence[RiskFlag], look: Look, *,
    number: int = 1,
) -> Part:  # fmt: skip
    """One part of what an attempt does otherwise than an earlier one. Raises GitError as `part`."""
    found = comparing.compared(store, earlier, attempt)
    last = max(-(-len(found.changed) // FILES), 1)
    number = min(max(number, 1), last)
    first = (number - 1) * FILES
    chosen = enumerate(found.changed[first : first + FILES], first + 1)
    files = [_file_since(at, each, found, flags) for at, each in chosen]
    _show(store, files, look, _fitting(store, files))
    return Part(files, len(found.changed), number, last, "", {}, found.same)


def one_since(
    store: Store, earlier: Attempt, attempt: Attempt, flags: Sequence[RiskFlag], look: Look, *,
    number: int, whole: bool = False,
) -> File | None:  # fmt: skip
    """One file of `since` by its number; None when there are not so many. Raises GitError."""
    found = comparing.compared(store, earlier, attempt)
    if not 1 <= number <= len(found.changed):
        return None
    file = _file_since(number, found.changed[number - 1], found, flags)
    return _alone(store, file, look, whole=whole)


def of_commit(
    store: Store, attempt: Attempt, commit: int, flags: Sequence[RiskFlag], look: Look, *,
    number: int = 1,
) -> Part | None:  # fmt: skip
    """One part of what a commit of a series does; None when there is none of this number.

    Raises GitError as `part` does.
    """
    if (trees := attempt.trees_of(commit)) is None:
        return None
    everything = patches.changed_paths(store, *trees)
    last = max(-(-len(everything) // FILES), 1)
    number = min(max(number, 1), last)
    first = (number - 1) * FILES
    by_path = _by_path([flag for flag in flags if flag.commit == commit])
    chosen = enumerate(everything[first : first + FILES], first + 1)
    files = [_file(at, each, by_path) for at, each in chosen]
    for file in files:
        file.commit = commit
    _show(store, files, look, _fitting(store, files))
    for file in files:
        if file.is_large:
            file.why = "More differs than this page shows: the patch of the commit holds it."
    return Part(files, len(everything), number, last, "", {})


def path_of(store: Store, attempt: Attempt, number: int) -> str:
    """The path of a file by its number; "" when there are not so many. Raises GitError."""
    everything = patches.changed_paths(store, attempt.base_tree, attempt.tree)
    return spelled(everything[number - 1].path) if 1 <= number <= len(everything) else ""


def _by_path(flags: Iterable[RiskFlag]) -> dict[str, list[RiskFlag]]:
    found: dict[str, list[RiskFlag]] = {}
    for flag in flags:
        if flag.path:
            found.setdefault(flag.path, []).append(flag)
    return found


def _file(number: int, changed: ChangedPath, flags: Mapping[str, list[RiskFlag]]) -> File:
    path = spelled(changed.path)
    file = File(number, changed, path, flags.get(path, []))
    file.beside = list(file.flags)
    lines = changed.added_lines + changed.deleted_lines
    is_lock = file.name.lower() in _LOCKS
    file.is_open = bool(file.flags) or (lines <= OPEN_LINES and not is_lock)
    return file


def _file_since(
    number: int, changed: ChangedPath, found: comparing.Compared, flags: Sequence[RiskFlag]
) -> File:
    file = _file(number, changed, _by_path(flags))
    file.whole, file.words = found.later.get(file.path), found.words(file.path)
    return file


def _fitting(store: Store, files: Sequence[File]) -> list[File]:
    """The files whose lines have room on the page; the others are told why not."""
    sizes = _bytes(store, files)
    lines, size, fitting = 0, 0, []
    for file in files:
        more = file.changed.added_lines + file.changed.deleted_lines
        if why := _without_lines(store, file.changed):
            file.why = why
        elif more > LINES or lines + more > PART_LINES or size + sizes[file.number] > PART_BYTES:
            file.is_large = True
            file.why = f"{more:,} lines differ, which have a page of their own."
        else:
            lines, size = lines + more, size + sizes[file.number]
            fitting.append(file)
    return fitting


def _without_lines(store: Store, changed: ChangedPath) -> str:
    if changed.binary:
        return "It is no text: a binary file. The patch holds it whole."
    if changed.old_id == changed.new_id:
        return "Its content is as it was."
    return ""


def _bytes(store: Store, files: Sequence[File]) -> dict[int, int]:
    """The bytes of both sides of each file, by its number."""
    pairs = {file.number: (file.changed.old_id, file.changed.new_id) for file in files}
    sizes = store.sizes({thing for pair in pairs.values() for thing in pair} - {""})
    return {number: sum(sizes.get(one, 0) for one in pair) for number, pair in pairs.items()}


def _show(
    store: Store, files: Sequence[File], look: Look, chosen: Sequence[File], *,
    context: int = 3, most: int = LINES * 8,
) -> None:  # fmt: skip
    """Give the chosen files their rows."""
    colours = Colours()
    found = diffs.of_files(store, [file.changed for file in chosen], context=context)
    for file, hunks in zip(chosen, found, strict=True):
        at_line: dict[int, list[RiskFlag]] = {}
        for flag in file.flags:
            if flag.line and flag.commit == file.commit:
                at_line.setdefault(flag.line, []).append(flag)
        kept = _cut(hunks, most)
        file.rows, told = rendering.table(
            file.number, file.changed.path, kept, colours, look, at_line
        )
        file.beside = [
            flag for flag in file.flags if flag.commit != file.commit or flag.line not in told
        ]
        if kept != hunks:
            file.is_large, file.why = True, f"Only the first {most:,} lines are shown."
        elif not hunks and not file.why:
            file.why = "It is empty." if not file.changed.new_id else "No line of it differs."


def _cut(hunks: list[diffs.Hunk], most: int) -> list[diffs.Hunk]:
    kept: list[diffs.Hunk] = []
    room = most
    for hunk in hunks:
        if room <= 0:
            return kept
        if len(hunk.lines) > room:
            return [*kept, diffs.Hunk(hunk.old, hunk.new, hunk.around, hunk.lines[:room])]
        kept.append(hunk)
        room -= len(hunk.lines)
    return kept
