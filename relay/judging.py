"""Reads a request body for what a policy judges: the models it names and how much it may answer.

Whatever the protocol, every known spelling is looked for, since one server accepts several: those
of OpenAI, Anthropic and Google, of OpenRouter, llama.cpp and vLLM. It looks into every field but
those that hold the conversation, schemas and the caller's own labels. What goes out is encoded
from what was judged here, so there is no second reading.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field
from typing import Any

import msgspec

from relay.protocols import Dialect
from relay.strict_json import NotStrict, read_list, read_object, read_value

MAX_JUDGED_BYTES = 512 * 1024  # of all fields that are looked into
LEAST_THINKING = 1024  # Anthropic accepts no smaller budget, and none that is not below max_tokens


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Compared without case and underscores: some servers do so too.
_OUTPUT = _words(
    "maxtokens maxcompletiontokens maxoutputtokens maxtokenstosample maxnewtokens npredict "
    "numpredict"
)
_COPIES = _words("n bestof ncmpl numreturnsequences candidatecount")
_ANTHROPIC_THINKING = "budgettokens"
_THINKING = _words("thinkingbudget thinkingbudgettokens thinkingtokenbudget reasoningbudget")
# Conversation, schemas and labels: the words in there mean nothing to a server.
_OPAQUE = _words(
    "messages contents system systeminstruction instructions prompt suffix prediction documents "
    "metadata clientmetadata labels trace user stop schema jsonschema responseschema "
    "responsejsonschema guidedjson structuredoutputs grammar chattemplate chattemplatekwargs "
    "logitbias"
)
_OPAQUE_IN_TOOLS = _words(
    "function parameters inputschema inputexamples description functiondeclarations"
)
_NAMES = _words("fallback fallbacks preset presets")  # beside whatever holds "model"
_NAMES_BELOW = _words("id name slug")


class ThinkingTooLarge(ValueError):
    """A thinking budget cannot be lowered below the output limit that would be set."""


class Body:
    """A request body, taken apart.

    Args:
        text: as it came.

    Raises:
        NotStrict: it cannot be read in one way only.
    """

    def __init__(self, text: bytes) -> None:
        self.fields = read_object(text)
        self.size = len(text)
        self._look: _Look | None = None  # the last one, of the body as it is now

    def look(self) -> _Look:
        """What is in every field that may matter; looked into once, unless a field changes.

        Raises:
            NotStrict: one of them cannot be read in one way only.
        """
        if self._look is None:
            self._look = self._walk(None)
        return self._look

    @property
    def names(self) -> list[str]:
        """Every model the body names, in whatever field."""
        return self.look().names

    def value(self, key: str) -> Any:
        """A field's value, None when it is absent."""
        return read_value(bytes(self.fields[key])) if key in self.fields else None

    def set(self, key: str, value: Any) -> None:
        """Replace a field or add it."""
        self.fields[key] = _raw(value)
        self._look = None

    def encoded(self) -> bytes:
        """The body as it will be sent."""
        return msgspec.json.encode(self.fields)

    def output_bound(self, dialect: Dialect) -> int | None:
        """The most tokens it may be answered with, all copies together; None when nothing says."""
        seen = self.look()
        if seen.unreadable or not any(_is_positive(self._at(path)) for path in dialect.BOUND):
            return None
        return max(seen.bounds) * max(seen.copies, default=1)

    def limit_output(self, dialect: Dialect | None, limit: int) -> bool:
        """Let it be answered with at most `limit` tokens; whether that changed it.

        Limits above it, and values that are no limit, become it; where none is set, one is added.
        A request for several answers becomes one for one. A thinking budget that leaves no room
        for an answer becomes half of the limit.

        Args:
            dialect: None adds no limit.

        Raises:
            ThinkingTooLarge: a thinking budget would have to be smaller than Anthropic takes.
        """
        look = self._walk(limit)
        if dialect is not None and all(self._at(path) is None for path in dialect.BOUND):
            self._add(dialect.BOUND, limit)
            look.bounds.append(limit)
            look.changes += 1
        self._look = look
        return look.changes > 0

    def _at(self, path: tuple[str, ...]) -> Any:
        value = self.value(path[0])
        for key in path[1:]:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def _add(self, paths: tuple[tuple[str, ...], ...], limit: int) -> None:
        outers = {path[0]: self.value(path[0]) for path in paths if len(path) > 1}
        used = (path for path in paths if isinstance(outers.get(path[0]), dict))
        key, *inner = next(used, paths[0])
        self.set(key, {**(outers[key] or {}), inner[0]: limit} if inner else limit)

    # -- the walk ----------------------------------------------------------------------------------
    def _walk(self, limit: int | None) -> _Look:
        """Look into every field that may matter; with a limit, change what is above it."""
        look = _Look(limit)
        for key, raw in list(self.fields.items()):
            word = _word(key)
            if word == "tools":
                self.fields[key] = look.tools(raw)
            elif word == "input":
                self.fields[key] = look.conversation(raw)
            elif word not in _OPAQUE:
                self.fields[key] = look.member(key, raw)
        return look


@dataclass(slots=True)
class _Look:
    """One walk through a body: what is there now, and what it changed because of its limit."""

    limit: int | None
    names: list[str] = field(default_factory=list)
    bounds: list[int] = field(default_factory=list)
    copies: list[int] = field(default_factory=list)
    unreadable: bool = False  # a limit that is none
    changes: int = 0
    read: int = 0  # bytes taken apart so far

    def member(self, key: str, raw: msgspec.Raw) -> msgspec.Raw:
        """Look into one field; the same bytes, unless something in it was changed."""
        text = bytes(raw)
        self.read += len(text)
        if self.read > MAX_JUDGED_BYTES:
            raise NotStrict(f"its settings have more than {MAX_JUDGED_BYTES} bytes")
        before = self.changes
        value = self._member(key, read_value(text), named=False)
        return raw if self.changes == before else _raw(value)

    def tools(self, raw: msgspec.Raw) -> msgspec.Raw:
        """Look into tools: those that are no functions may name a model of their own."""
        text = bytes(raw)
        if not text.startswith(b"["):
            return self.member("tools", raw)
        before = self.changes
        made = [self._tool(item) if item.startswith(b"{") else item for item in read_list(text)]
        return raw if self.changes == before else msgspec.Raw(b"[" + b",".join(made) + b"]")

    def conversation(self, raw: msgspec.Raw) -> msgspec.Raw:
        """Look for tools in a conversation: Responses may offer them in the middle of it."""
        text = bytes(raw)
        if not text.startswith(b"["):
            return raw
        before = self.changes
        items = read_list(text)
        for number, item in enumerate(items):
            if item.startswith(b"{") and "tools" in _members(item):
                members = read_object(item)
                members["tools"] = self.tools(members["tools"])
                items[number] = msgspec.json.encode(members)
        return raw if self.changes == before else msgspec.Raw(b"[" + b",".join(items) + b"]")

    def _tool(self, text: bytes) -> bytes:
        members = read_object(text)
        kind = read_value(bytes(members["type"])) if "type" in members else ""
        is_router = isinstance(kind, str) and kind.startswith("openrouter:")
        for key, raw in list(members.items()):
            word = _word(key)
            if word == "tools":
                members[key] = self.tools(raw)
            elif word not in _OPAQUE_IN_TOOLS or (is_router and word == "parameters"):
                members[key] = self.member(key, raw)
        return msgspec.json.encode(members)

    def _members(self, value: dict[str, Any], named: bool = False) -> dict[str, Any]:
        return {key: self._member(key, inner, named) for key, inner in value.items()}

    def _member(self, key: str, value: Any, named: bool) -> Any:
        word = _word(key)
        if word in _OPAQUE:
            return value
        if word in _OUTPUT:
            return self._bounded(value)
        if word in _COPIES:
            return self._copies(value)
        if word == _ANTHROPIC_THINKING or word in _THINKING:
            return self._thinking(value, LEAST_THINKING if word == _ANTHROPIC_THINKING else 1)
        if word == "reasoning" and isinstance(value, dict) and "max_tokens" in value:
            rest = self._members({k: v for k, v in value.items() if k != "max_tokens"})
            return {**rest, "max_tokens": self._thinking(value["max_tokens"], LEAST_THINKING)}
        below = named and word in _NAMES_BELOW
        return self._any(value, "model" in word or word in _NAMES or below)

    def _any(self, value: Any, named: bool) -> Any:
        if isinstance(value, dict):
            return self._members(value, named)
        if isinstance(value, list):
            return [self._any(item, named) for item in value]
        if named and isinstance(value, str):
            self.names.append(value)
        return value

    def _bounded(self, value: Any) -> Any:
        if value is None:
            return None
        good = _is_positive(value)
        if self.limit is not None and (not good or value > self.limit):
            value, good = self._change(self.limit), True
        if good:
            self.bounds.append(value)
        else:
            self.unreadable = True
        return value

    def _copies(self, value: Any) -> Any:
        if value is None:
            return None
        if self.limit is not None and (not _is_positive(value) or value > 1):
            value = self._change(1)
        if _is_positive(value):
            self.copies.append(value)
        else:
            self.unreadable = True
        return value

    def _thinking(self, value: Any, least: int) -> Any:
        if self.limit is None or not _is_positive(value) or value < self.limit:
            return value
        if self.limit <= least:
            raise ThinkingTooLarge(f"a thinking budget has at least {least} tokens")
        return self._change(max(least, self.limit // 2))

    def _change(self, value: int) -> int:
        self.changes += 1
        return value


_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


@functools.lru_cache(maxsize=512)
def _word(key: str) -> str:
    return key.casefold().replace("_", "")


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _raw(value: Any) -> msgspec.Raw:
    text = str(value) if type(value) is int else _encoder.encode(value)
    return msgspec.Raw(text.encode())


_encoder = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
