"""Making hostile text safe to print: nothing it holds can move the cursor or hide."""

from __future__ import annotations

import re
import unicodedata

# left-to-right and right-to-left overrides, isolates, and the invisible characters around them
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


# what may have to be written differently; megabytes of plain text are passed over at once
_ODD, _ODD_IN_LINES = re.compile(r"[^\x20-\x7e]"), re.compile(r"[^\x20-\x7e\n\t]")


def visible(text: str, *, limit: int | None = None, lines: bool = False) -> str:
    """`text` with every control, bidirectional and zero-width character written as `\\xNN`.

    Args:
        limit: at most this many characters of the result, an ellipsis where it was cut.
        lines: keep line feeds and tabs.
    """
    if limit is not None:
        text = text[: limit + 1]
    if not text.isprintable():
        odd = _ODD_IN_LINES if lines else _ODD
        text = odd.sub(lambda found: _shown(found[0]), text)
    if limit is not None and len(text) > limit:
        return text[: max(limit - 1, 0)] + "…"
    return text


def visible_name(name: str, *, limit: int | None = None) -> str:
    """The same for a file's name, in which a line feed is no space and a byte may be no UTF-8.

    A backslash is doubled: two names never look the same, unless both were cut.
    """
    if "\\" in name or not name.isprintable():
        name = "".join(_of_name(c) for c in name)
    return visible(name, limit=limit)


def _of_name(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # as os.fsdecode gives a byte
        return f"\\x{code - 0xDC00:02x}"
    if 0x80 <= code <= 0xFF and unicodedata.category(char) in _HIDDEN:  # no such byte
        return f"\\u{code:04x}"
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}.get(char, char)


def _shown(char: str) -> str:
    if char in "\n\t\r":
        return " "
    if unicodedata.category(char) in _HIDDEN:
        code = ord(char)
        if code > 0xFFFF:
            return f"\\U{code:08x}"
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return char
