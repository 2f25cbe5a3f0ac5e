"""Which part of a line of code is what, for its colour: by the file's name alone, and capped.

What is coloured is hostile: only well-known languages, only short pieces, and only for so long.
Whatever goes beyond is shown without colours, and as exactly the same text.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Literal, Name, Number, String, Token

from runs import clock

LINE_MAX = 500  # characters of a line in a piece that is coloured
PIECE_MAX = 24_000  # characters
SECONDS = 1.0  # of one page

_LANGUAGES = {
    "python": "py pyi", "javascript": "js cjs mjs jsx", "typescript": "ts tsx mts", "json": "json",
    "yaml": "yml yaml", "toml": "toml", "ini": "ini cfg", "bash": "sh bash zsh", "c": "c h",
    "cpp": "cc cpp cxx hpp hh", "go": "go", "rust": "rs", "java": "java", "kotlin": "kt kts",
    "html": "html htm", "css": "css", "scss": "scss", "sql": "sql", "ruby": "rb", "php": "php",
    "swift": "swift", "csharp": "cs", "lua": "lua", "xml": "xml svg",
}  # fmt: skip
_BY_SUFFIX = {end: name for name, ends in _LANGUAGES.items() for end in ends.split()}
_BY_NAME = {"dockerfile": "docker", "containerfile": "docker", "makefile": "make"}
# the first that a token is within decides
_CLASSES: tuple[tuple[Any, str], ...] = (
    (Comment, "c"), (String, "s"), (Number, "n"), (Keyword, "k"), (Literal, "s"),
    (Name.Decorator, "d"), (Name.Function, "f"), (Name.Class, "f"), (Name.Tag, "k"),
    (Name.Builtin, "b"), (Name.Attribute, "b"), (Name.Exception, "b"),
)  # fmt: skip
Piece = tuple[str, str]  # class, "" for none; text


class Colours:
    """The colours of one page, which end when the time is up."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._until = clock.monotonic() + seconds

    def of(self, path: bytes, lines: Sequence[str]) -> list[list[Piece]]:
        """The pieces of each line; joined they are the line."""
        plain: list[list[Piece]] = [[("", line)] for line in lines]
        name = language_of(path)
        if not name or clock.monotonic() > self._until:
            return plain
        size = sum(map(len, lines)) + len(lines)
        if size > PIECE_MAX or any(len(line) > LINE_MAX for line in lines):
            return plain
        found = self._lexed(name, "\n".join(lines))
        whole = [["".join(text for _, text in line)] for line in found]
        # a lexer that changes the text may not decide what is read
        return found if [one[0] for one in whole] == list(lines) else plain

    def _lexed(self, name: str, text: str) -> list[list[Piece]]:
        lines: list[list[Piece]] = [[]]
        for _, kind, value in _lexer(name).get_tokens_unprocessed(text):
            if clock.monotonic() > self._until:
                return []
            first, *rest = value.split("\n")
            css = _class_of(kind)
            if first:
                lines[-1].append((css, first))
            lines += [[(css, one)] if one else [] for one in rest]
        return lines


def language_of(path: bytes) -> str:
    """The language of a file by its name; "" when it is none that is coloured."""
    name = path.rpartition(b"/")[2].decode("utf-8", "replace").lower()
    if name in _BY_NAME:
        return _BY_NAME[name]
    return _BY_SUFFIX.get(name.rpartition(".")[2], "") if "." in name else ""


@functools.cache
def _lexer(name: str) -> Any:
    return get_lexer_by_name(name)


@functools.lru_cache(maxsize=1000)
def _class_of(kind: Any) -> str:
    if kind is Token:
        return ""
    return next((css for within, css in _CLASSES if kind in within), "")
