"""What a change does to files as such: links, modes, programs, sizes, names, tests that go."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from changes.added import SUBMODULE, Added
from changes.flag import Flag
from changes.globs import matches
from changes.names import folded, names_git
from changes.patches import ChangedPath
from runs.visible import visible, visible_name

LINK = "120000"
PROGRAM = "100755"
MANY_FILES = 300
MANY_LINES = 10_000
_FEWER_LINES = 20  # of a test
_TESTS = (
    "**/tests/", "**/test/", "**/__tests__/", "**/spec/", "**/specs/", "**/e2e/", "test_*.py",
    "*_test.py", "*_test.go", "*_test.rs", "*.test.*", "*.spec.*", "*_spec.rb", "*Test.java",
    "*Tests.java", "*Test.kt", "*Tests.cs", "*Test.php",
)  # fmt: skip
_PROGRAMS = {
    b"\x7fELF": "a Linux program",
    b"MZ": "a Windows program",
    b"\xcf\xfa\xed\xfe": "a macOS program",
    b"\xce\xfa\xed\xfe": "a macOS program",
    b"\xca\xfe\xba\xbe": "a macOS program or a Java class",
    b"\0asm": "a WebAssembly program",
    b"dex\n": "an Android program",
}
_PACKED = {
    b"PK\x03\x04": "zip",
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf": "7z",
    b"Rar!": "rar",
    b"%PDF": "PDF",
}
_RESERVED = re.compile(r"(?i)(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?")


def is_test(path: bytes) -> bool:
    return matches(path, _TESTS)


def of_paths(changed: Sequence[ChangedPath], *, present: Sequence[bytes]) -> Iterator[Flag]:
    """What the list alone says.

    Args:
        present: every path of the result.
    """
    twins = Counter(folded(path) for path in present)
    for each in changed:
        yield from _of_mode(each)
        yield from _of_name(each)
        yield from _of_tests(each)
        if each.kind != "deleted" and twins[folded(each.path)] > 1:
            reason = "another name in the tree is the same on a Mac or Windows: one is lost there"
            yield Flag("look-alike", "high", each.path, 0, reason)
    lines = sum(each.added_lines + each.deleted_lines for each in changed)
    if len(changed) > MANY_FILES or lines > MANY_LINES:
        reason = f"{len(changed):,} files and {lines:,} lines: more than a person reads at once"
        yield Flag("size", "low", b"", 0, reason)


def of_file(file: Added, *, largest: int) -> Iterator[Flag]:
    """What one file's content says by its kind.

    Args:
        largest: bytes; a file above it is told of.
    """
    path, content = file.changed.path, file.content
    if file.changed.new_mode == LINK:
        yield _link(path, content)
        return
    if len(content) > largest:
        yield too_large(path, len(content))
    if file.binary:
        program = next((what for mark, what in _PROGRAMS.items() if content.startswith(mark)), "")
        if program:
            yield Flag("binary", "high", path, 0, f"{program}: nobody can read what it does")
        else:
            yield Flag("binary", "medium", path, 0, "a binary file: the diff does not show it")
    if content[:2] in (b"\x30\x82", b"\x30\x81") and path.endswith((b".key", b".der", b".p8")):
        yield Flag("secret", "high", path, 0, "it looks like a private key in binary form")


def too_large(path: bytes, size: int) -> Flag:
    return Flag("size", "medium", path, 0, f"the file has {size / 2**20:,.1f} MB")


def packed(content: bytes) -> str:
    """The kind of archive whose inside no look reaches; "" for none."""
    return next((kind for mark, kind in _PACKED.items() if content.startswith(mark)), "")


def _of_mode(each: ChangedPath) -> Iterator[Flag]:
    old, new = each.old_mode, each.new_mode
    if SUBMODULE in (old, new) and (old != new or each.old_id != each.new_id):
        if new != SUBMODULE:
            yield Flag("submodule", "high", each.path, 0, "a submodule is taken out")
        else:
            where = "a submodule is added" if old != new else "a submodule is moved"
            reason = f"{where}: it points to the commit {each.new_id[:12]} of another repository"
            yield Flag("submodule", "high", each.path, 0, reason)
    elif new == PROGRAM != old:
        reason = "it can be executed now" if each.old_id else "a new file that can be executed"
        yield Flag("mode", "medium", each.path, 0, reason)
    elif old == PROGRAM and each.kind != "deleted" and new != LINK:
        yield Flag("mode", "low", each.path, 0, "it cannot be executed any more")
    if each.kind == "type" and SUBMODULE not in (old, new):
        reason = "a file became a link" if new == LINK else "a link became a file"
        yield Flag("type", "high", each.path, 0, reason)


def _of_name(each: ChangedPath) -> Iterator[Flag]:
    if each.kind not in ("added", "renamed"):
        return
    text = each.path.decode(errors="surrogateescape")
    trouble = ""
    if visible(text) != text:
        trouble = (
            f"the name holds what nobody sees, or is no UTF-8: {visible_name(text, limit=200)}"
        )
    elif any(part.startswith("-") for part in text.split("/")):
        trouble = "the name begins with a dash: commands take it for an option"
    elif any(part.endswith((" ", ".")) or part.startswith(" ") for part in text.split("/")):
        trouble = "the name begins or ends in a space or a dot"
    elif any(_RESERVED.fullmatch(part) for part in text.split("/")):
        trouble = "Windows keeps this name for a device: it cannot be checked out there"
    elif re.search(r'[<>:"|?*\\]', text):
        trouble = "the name holds a character that Windows does not allow"
    if trouble:
        yield Flag("name", "medium", each.path, 0, trouble)


def _of_tests(each: ChangedPath) -> Iterator[Flag]:
    gone = each.path if each.kind == "deleted" else each.old_path
    if gone is not None and is_test(gone) and not (each.kind == "renamed" and is_test(each.path)):
        how = "deleted" if each.kind == "deleted" else "moved to where no test is looked for"
        yield Flag("deleted-tests", "high", each.path, 0, f"a test is {how}")
    elif each.deleted_lines - each.added_lines >= _FEWER_LINES and is_test(each.path):
        fewer = each.deleted_lines - each.added_lines
        yield Flag("deleted-tests", "medium", each.path, 0, f"a test has {fewer} lines fewer")


def _link(path: bytes, target: bytes) -> Flag:
    shown = visible(target.decode(errors="surrogateescape"), limit=200)
    where = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if target.startswith((b"/", b"~", b"\\")) or re.match(rb"[A-Za-z]:", target):
        reason = f"a link to an absolute path: {shown}"
    elif where == b".." or where.startswith(b"../"):
        reason = f"a link that leads out of the repository: {shown}"
    elif any(names_git(part) for part in where.split(b"/")):
        reason = f"a link into git's own directory: {shown}"
    else:
        return Flag("symlink", "medium", path, 0, f"a link to {shown}")
    return Flag("symlink", "high", path, 0, reason)
