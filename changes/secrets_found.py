"""Secrets in what a change adds: held ones first, then the shapes of tokens, then assignments.

Lines, names and the strings of binaries are read. A flag says where, never what.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from changes.added import Added
from changes.assigned import assigned
from changes.flag import Flag
from changes.own_paths import spelled
from changes.patches import ChangedPath
from runs import secret_scan

TOTAL_MAX = 32 << 20  # bytes of added lines; the scan takes about two seconds a megabyte
_PIECE = 1 << 20  # bytes scanned at once, well below secret_scan.SCAN_MAX
_OVERLAP = 4096  # bytes of the piece before that are read again: nothing hides on the edge
_SEAM = b"\n"


@dataclass(slots=True)
class Scan:
    """Collects what files add, and scans it in pieces of a size that does not matter to the result.

    Args:
        held: the secrets of this installation, by name.
    """

    held: Mapping[str, str]
    flags: list[Flag] = field(default_factory=list)
    could_not_check: list[str] = field(default_factory=list)
    lines: int = 0
    _texts: list[tuple[bytes, int, bytes]] = field(default_factory=list)
    _size: int = 0
    _total: int = 0
    _skipped: int = 0
    _first_skipped: bytes = b""

    def add(self, file: Added) -> None:
        """Take a file's added lines. Beyond TOTAL_MAX it is only counted as not looked at."""
        size = sum(len(line) + 1 for _number, line in file.lines)
        if self._total + size > TOTAL_MAX:
            self._first_skipped = self._first_skipped or file.changed.path
            self._skipped += 1
            return
        self._total += size
        self.lines += len(file.lines)
        for number, line in file.lines:
            self._take(file.changed.path, number, line)
        self.flags += assigned(file)

    def add_names(self, changed: Sequence[ChangedPath]) -> None:
        """Take the names that are new."""
        for each in changed:
            if each.kind in ("added", "renamed"):
                self._take(each.path, 0, each.path)

    def finish(self) -> None:
        """Scan what is left."""
        self._flush()
        if self._skipped:
            more = f" and {self._skipped - 1} more files" if self._skipped > 1 else ""
            self.could_not_check.append(
                f"secrets in {spelled(self._first_skipped)}{more}: the change adds more than "
                f"{TOTAL_MAX >> 20} MB"
            )

    def _take(self, path: bytes, number: int, line: bytes) -> None:
        for start in range(0, max(len(line), 1), _PIECE - _OVERLAP):
            piece = line[start : start + _PIECE]
            if self._size + len(piece) > _PIECE:
                self._flush(keep=_OVERLAP)
            self._texts.append((path, number, piece))
            self._size += len(piece) + len(_SEAM)

    def _flush(self, keep: int = 0) -> None:
        """Scan what is there. `keep` bytes of its last file's end stay, for the next piece."""
        self.flags += _scanned(self._texts, self.held)
        kept: list[tuple[bytes, int, bytes]] = []
        for path, number, line in reversed(self._texts):
            if keep <= 0 or path != self._texts[-1][0] or len(line) >= keep:
                break
            kept.append((path, number, line))
            keep -= len(line) + len(_SEAM)
        self._texts = kept[::-1]
        self._size = sum(len(line) + len(_SEAM) for _path, _number, line in self._texts)


def of_text(text: bytes, held: Mapping[str, str]) -> Iterator[Flag]:
    """The secrets in a text that is no file: held ones, and the shapes of tokens."""
    for start in range(0, len(text), _PIECE - _OVERLAP):
        yield from _of_file([(b"", 0, text[start : start + _PIECE])], held)


def _scanned(texts: Sequence[tuple[bytes, int, bytes]], held: Mapping[str, str]) -> Iterator[Flag]:
    """The findings of several files: together first, which is nearly always enough."""
    if not texts or not secret_scan.scan_for(_joined(texts), held):
        return
    found = False
    for same in _by_file(texts):
        for flag in _of_file(same, held):
            found = True
            yield flag
    if not found:  # it lies in several files, a part in each
        yield from _of_file(texts, held)


def _by_file(
    texts: Sequence[tuple[bytes, int, bytes]],
) -> Iterator[Sequence[tuple[bytes, int, bytes]]]:
    start = 0
    for index in range(1, len(texts) + 1):
        if index == len(texts) or texts[index][0] != texts[start][0]:
            yield texts[start:index]
            start = index


def _joined(texts: Sequence[tuple[bytes, int, bytes]]) -> bytes:
    return _SEAM.join(line for _path, _number, line in texts)


def _of_file(texts: Sequence[tuple[bytes, int, bytes]], held: Mapping[str, str]) -> Iterator[Flag]:
    """One flag for each secret and spelling, at the line where it is first."""
    # a binary's string or a name may hold what ends a line for the scan
    starts, count = [], 1
    for _path, _number, line in texts:
        starts.append(count)
        count += line.count(b"\n") + 1
    for finding in secret_scan.scan_for(_joined(texts), held):
        path, number, _line = texts[max(bisect_right(starts, finding.line) - 1, 0)]
        spelling = f", {finding.spelling}" if finding.spelling not in ("", "plain") else ""
        often = f", {finding.times} times" if finding.times > 1 else ""
        if finding.kind == "held":
            why = f"a secret of this host, {finding.name}{spelling}{often}"
            yield Flag("secret", "high", path, number, why, needs_second_person=True)
        elif finding.kind == "token":
            why = f"the shape of {finding.name}{spelling}{often}"
            yield Flag("secret", "high", path, number, why)
