"""A file's differing lines as rows of a table, in one column or two. All text in them is hostile.

Rows are built here and not in a template: a page may hold thousands. Whatever an agent wrote goes
through `marked`, which is the only way into a row.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from changes.colours import Colours, Piece
from changes.diffs import Hunk, Line
from changes.models import RiskFlag

LINE_SHOWN = 2000  # characters of one line
_ODD = re.compile(r"[^\t\x20-\x7e]")
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
# letters and marks by their category, and nothing to the eye
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_SIGNS = {"add": "+", "del": "−", "same": ""}


@dataclass(frozen=True, slots=True)
class Look:
    """How the rows are made.

    Args:
        split: the two sides beside each other.
        link: where the number of a line leads, up to that line's name; "" for nowhere.
    """

    split: bool = False
    link: str = ""


@dataclass(slots=True)
class _File:
    number: int
    look: Look
    flags: Mapping[int, Sequence[RiskFlag]]
    left: set[int] = field(default_factory=set)  # lines with flags that no row was made for


def table(
    number: int,
    path: bytes,
    hunks: Sequence[Hunk],
    colours: Colours,
    look: Look,
    flags: Mapping[int, Sequence[RiskFlag]],
) -> tuple[SafeString, frozenset[int]]:
    """The bodies of a table, and the lines whose flags stand in it.

    Args:
        number: of the file on the page, for the rows' names.
        flags: by their line in the result.
    """
    file = _File(number, look, flags, set(flags))
    made = "".join(_hunk(file, hunk, _coloured(path, hunk, colours)) for hunk in hunks)
    # every text in it went through `marked`
    return mark_safe(made), frozenset(flags) - frozenset(file.left)  # noqa: S308


def marked(text: str) -> str:
    """Text as HTML in which nothing hides: unseen characters stand there by their numbers."""
    return _ODD.sub(lambda found: _char(found[0]), escape(text))


@functools.lru_cache(maxsize=4096)
def _char(char: str) -> str:
    if not _BLANK.match(char) and unicodedata.category(char) not in _HIDDEN:
        return char
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8
        shown = f"\\x{code - 0xDC00:02x}"
    else:
        shown = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return f'<mark class="sk-unseen">{shown}</mark>'


def _coloured(path: bytes, hunk: Hunk, colours: Colours) -> dict[int, str]:
    """The HTML of each line of a hunk, by its identity."""
    made: dict[int, str] = {}
    for leaves_out in ("add", "del"):
        side = [line for line in hunk.lines if line.kind != leaves_out]
        for line, pieces in zip(side, colours.of(path, [one.text for one in side]), strict=True):
            made[id(line)] = _text(line, pieces)
    return made


def _text(line: Line, pieces: Iterable[Piece]) -> str:
    parts, room = [], LINE_SHOWN
    for css, text in pieces:
        piece = marked(text[:room])
        parts.append(f'<span class="sk-{css}">{piece}</span>' if css else piece)
        room -= len(text)
        if room <= 0:
            break
    if room < 0:
        parts.append(f'<i class="sk-more">{len(line.text) - LINE_SHOWN:,} characters more</i>')
    if line.is_last:
        parts.append('<i class="sk-more">no line feed at the end</i>')
    return "".join(parts)


def _hunk(file: _File, hunk: Hunk, html: Mapping[int, str]) -> str:
    around = f" {marked(hunk.around[:200])}" if hunk.around else ""
    wide = 4
    head = (
        f'<tr class="sk-hunk"><td colspan="{wide}">'
        f"from line {hunk.new or hunk.old}{around}</td></tr>"
    )
    rows = _split(file, hunk, html) if file.look.split else _unified(file, hunk, html)
    return f"<tbody>{head}{''.join(rows)}</tbody>"


def _unified(file: _File, hunk: Hunk, html: Mapping[int, str]) -> Iterable[str]:
    for line in hunk.lines:
        sign = _SIGNS[line.kind]
        yield (
            f'<tr class="sk-{line.kind}" id="{_name(file, line)}">{_cell(file, line, "old")}'
            f'{_cell(file, line, "new")}<td class="sk-sign">{sign}</td>'
            f'<td class="sk-text">{html[id(line)]}</td></tr>'
        )
        yield _flags(file, line)


def _split(file: _File, hunk: Hunk, html: Mapping[int, str]) -> Iterable[str]:
    for old, new in _pairs(hunk.lines):
        named = new or old
        assert named is not None  # noqa: S101 - one of the two is there
        kind = "same" if named.kind == "same" else "both" if old and new else named.kind
        yield (
            f'<tr class="sk-{kind}" id="{_name(file, named)}">'
            f"{_side(file, old, 'old', html)}{_side(file, new, 'new', html)}</tr>"
        )
        yield _flags(file, named)


def _pairs(lines: Sequence[Line]) -> Iterable[tuple[Line | None, Line | None]]:
    """What stands beside what: the lines taken away beside those that came in their place."""
    gone: list[Line] = []
    came: list[Line] = []
    for line in lines:
        if line.kind == "same" or (line.kind == "del" and came):
            yield from _beside(gone, came)
            gone, came = [], []
        if line.kind == "same":
            yield line, line
        else:
            (gone if line.kind == "del" else came).append(line)
    yield from _beside(gone, came)


def _beside(gone: list[Line], came: list[Line]) -> Iterable[tuple[Line | None, Line | None]]:
    for at in range(max(len(gone), len(came))):
        yield gone[at] if at < len(gone) else None, came[at] if at < len(came) else None


def _side(file: _File, line: Line | None, side: str, html: Mapping[int, str]) -> str:
    if line is None:
        return '<td class="sk-no"></td><td class="sk-text sk-none"></td>'
    css = {"old": "sk-was", "new": "sk-now"}[side] if line.kind != "same" else ""
    sign = _SIGNS[line.kind]
    spoken = f'<span class="visually-hidden">{sign}</span>' if sign else ""
    return f'{_cell(file, line, side)}<td class="sk-text {css}">{spoken}{html[id(line)]}</td>'


def _cell(file: _File, line: Line, side: str) -> str:
    """The number of a line on one side; what can be said of is what is new, or taken away."""
    at = line.old if side == "old" else line.new
    if not at:
        return '<td class="sk-no"></td>'
    is_where = side == ("old" if line.kind == "del" else "new")
    if not file.look.link or not is_where:
        return f'<td class="sk-no">{at}</td>'
    name = _name(file, line)[1:]
    return (
        f'<td class="sk-no"><a href="{file.look.link}{name}#reason" rel="nofollow" '
        f'aria-label="Comment on line {at}">{at}</a></td>'
    )


def _name(file: _File, line: Line) -> str:
    where = f"L{line.old}" if line.kind == "del" else f"R{line.new}"
    return f"f{file.number}-{where}"


def _flags(file: _File, line: Line) -> str:
    """The flags at a line of the result, in a row below it."""
    if line.kind == "del" or line.new not in file.left:
        return ""
    file.left.discard(line.new)
    return render_to_string("changes/_flags_row.html", {"flags": file.flags[line.new], "wide": 4})
