"""What added lines hide from whoever reads them, and tests they switch off."""

from __future__ import annotations

import re
from collections.abc import Iterator

from changes.added import Added
from changes.flag import Flag, Severity
from changes.risky_shape import is_test

_PER_FILE = 20  # lines told of, each kind
_TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_UNSEEN = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef]"
)
# joiners make emoji and are letters' neighbours in several scripts; between ours they only hide
_JOINER = re.compile("(?<=[!-~])[\u200c\u200d]|[\u200c\u200d](?=[!-~])")
_CONTROL = re.compile("[\x01-\x08\x0b\x0e-\x1f\x7f-\x9f]")
# a letter of the Cyrillic or Greek alphabet that looks like one of ours, within a word of ours:
# the two nearest are looked for, as a search from each letter over all of a long line never ends
_MIXED = re.compile(
    "[A-Za-z][0-9_]*[аеорсухіјѕԁһοАВЕКМНОРСТХІЈΑΒΕΖΗΙΚΜΝΟΡΤΥΧ]"
    "|[аеорсухіјѕԁһοАВЕКМНОРСТХІЈΑΒΕΖΗΙΚΜΝΟΡΤΥΧ][0-9_]*[A-Za-z]"
)
_FAR = re.compile(r"\S[ \t]{150,}\S")
_PLAIN = re.compile(rb"[\x09\x0c\x20-\x7e]*")
_LOOKS: tuple[tuple[re.Pattern[str], Severity, str], ...] = (
    (_TURNING, "high", "a character that turns the direction of reading: it is not what it seems"),
    (_UNSEEN, "high", "a character that nobody sees"),
    (_JOINER, "high", "a character that nobody sees, within a word"),
    (_CONTROL, "medium", "a control character: a terminal obeys it"),
    (_MIXED, "medium", "a letter of another alphabet that looks like one of ours"),
    (_FAR, "medium", "text far to the right, where nobody looks"),
)
_OFF = re.compile(
    rb"(?i)pytest\.(?:mark\.)?(?:skip|xfail|importorskip)|unittest\.skip|\bself\.skipTest\(|"
    rb"\b(?:it|test|describe|context)\.(?:skip|only|todo)\b|\bx(?:it|describe|test)\(|"
    rb"@(?:Ignore|Disabled)\b|\bt\.Skip(?:f|Now)?\(|#\[ignore|\bmarkTestSkipped\("
)


def of_lines(file: Added) -> Iterator[Flag]:
    """What the added lines of a text hide, and the line ends of the whole."""
    if file.binary:
        return
    path = file.changed.path
    told = dict.fromkeys(range(len(_LOOKS)), 0)
    for number, line in file.lines:
        if _is_plain(line):
            continue
        text = line.decode(errors="surrogateescape")
        if number == 1:
            text = text.removeprefix("\ufeff")
        for index, (pattern, severity, reason) in enumerate(_LOOKS):
            if told[index] < _PER_FILE and pattern.search(text):
                told[index] += 1
                yield Flag("hidden-text", severity, path, number, reason)
    yield from _line_ends(file)
    if is_test(path):
        for number, line in file.lines:
            if _OFF.search(line):
                yield Flag("deleted-tests", "medium", path, number, "a test is switched off")


def _is_plain(line: bytes) -> bool:
    return _PLAIN.fullmatch(line) is not None and len(line) < 150


def _line_ends(file: Added) -> Iterator[Flag]:
    """Turned line ends make every line of a diff new: what else changed cannot be seen in it."""
    if not file.before:
        return
    was, now = _ends(file.before), _ends(file.content)
    if was is None or now is None or was == now:
        return
    only = file.before.replace(b"\r\n", b"\n") == file.content.replace(b"\r\n", b"\n")
    if only:
        reason = f"nothing but its line ends were turned, from {was} to {now}"
        yield Flag("line-ends", "low", file.changed.path, 0, reason)
    else:
        reason = (
            f"its line ends were turned from {was} to {now}: a diff shows every line as new, and "
            f"{len(file.lines):,} really are"
        )
        yield Flag("line-ends", "medium", file.changed.path, 0, reason)


def _ends(content: bytes) -> str | None:
    """What most lines end in; None for a file without lines."""
    lines = content.count(b"\n")
    if not lines:
        return None
    return "CRLF" if content.count(b"\r\n") * 2 > lines else "LF"
