"""Names a tree may not hold: git's own directory on some system, or the twin of another name."""

from __future__ import annotations

import re
import unicodedata

# a Mac leaves these out when it compares two names: `.g<zero width>it` is `.git` there
_IGNORED = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)
# Windows' short names of `.git`; other files can have them only where they were made on purpose
_SHORT = re.compile(rb"git~[0-9]+", re.IGNORECASE)
LONGEST = 3000  # bytes of a path: far below what a system opens, with room for where it stands


def forbidden(path: bytes) -> str:
    """Why no tree may hold this path; "" when it may. The text follows "which "."""
    if len(path) > LONGEST:
        return f"is longer than {LONGEST} bytes"
    suspect = not path.isascii() or b"git" in path.lower()  # most need no closer look
    if suspect and any(names_git(part) for part in re.split(rb"[/\\]", path)):
        return "is a name of git's own directory"
    if path.startswith(b"/") or any(part in (b"", b".", b"..") for part in path.split(b"/")):
        return "is no path below the repository"
    return ""


def names_git(part: bytes) -> bool:
    """Whether one name is `.git` here, on a Mac or on Windows.

    Windows drops spaces and dots at the end, takes what follows a colon for a stream of the same
    file, and knows `git~1`; a Mac ignores some characters, and both ignore case.
    """
    bare = part.split(b":", 1)[0].rstrip(b" .")
    return _SHORT.fullmatch(bare) is not None or folded(bare) == ".git" or folded(part) == ".git"


def folded(path: bytes) -> str:
    """The form two names share when some file system takes one for the other."""
    if path.isascii():
        return path.lower().decode()
    text = path.decode(errors="surrogateescape").translate(_IGNORED)
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKD", text).casefold())


def is_module_file(path: bytes) -> bool:
    """Whether a path's name is `.gitmodules`, on any system."""
    if path.isascii() and b"gi" not in path.lower():
        return False
    name = re.split(rb"[/\\]", path)[-1].split(b":", 1)[0].rstrip(b" .")
    short = re.fullmatch(rb"(?:gitmod~[1-4]|gi7eba~[0-9])", name, re.IGNORECASE)
    return short is not None or folded(name) == ".gitmodules"
