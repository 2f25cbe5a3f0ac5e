"""Reads what a call used out of its answer, while the answer passes.

It looks at copies and touches nothing, costs one search of each piece that holds no usage, and
never raises because of what a provider sent: what it cannot read, it does not report.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from relay.decoding import Decode, Undecodable, decoder
from relay.protocols import dialect
from relay.protocols.reading import MAX_USAGE_BYTES, count, merge_totals, money, usage_object
from relay.records import Protocol, Usage

MAX_LINE_BYTES = 16 * 1024 * 1024  # of a stream
MAX_DOCUMENT_BYTES = 16 * 1024 * 1024  # parsed whole; of a longer one only the end is searched
_SEARCHED_END = 1024 * 1024

_NEEDLE = b'"usage'  # of "usage" and of Google's "usageMetadata"
_USAGE_OBJECT = re.compile(rb'(?<!\\)"usage(?:Metadata)?"\s*:\s*(?=\{)')
_DATA = re.compile(rb"data:[ ]?")
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Meter:
    """The usage of one call.

    Args:
        protocol: what the call speaks.
        content_type: of the answer; an event stream is read line by line, all else as one JSON.
        content_encoding: of the answer; empty for none.
    """

    def __init__(self, protocol: Protocol, content_type: bytes, content_encoding: bytes) -> None:
        self.model = ""
        self.raw: dict[str, Any] = {}
        self._dialect = dialect(protocol)
        self._is_stream = content_type.strip().lower().startswith(b"text/event-stream")
        self._decode: Decode | None = None
        self._blind = False
        self._rest = bytearray()  # an unfinished line, or the document so far
        self._overflowed = False
        self._seen_data = False
        self.is_final = False  # a usage object was seen that no later one will add to
        if content_encoding.strip():
            try:
                self._decode = decoder(content_encoding)
            except Undecodable:
                self._blind = True

    @property
    def usage(self) -> Usage | None:
        """Our reading, made anew each time, or None when the answer said nothing."""
        return self._dialect.usage(self.raw) if self.raw else None

    @property
    def reported_cost_usd(self) -> float | None:
        """The `cost` in the usage object, when it is a sum of money.

        Of a caller who brought their own key to OpenRouter, `cost` is only its fee; what the
        model's provider takes stands beside it.
        """
        cost = money(self.raw.get("cost"))
        if self.raw.get("is_byok") is not True or cost is None:
            return cost
        details = self.raw.get("cost_details")
        beside = details.get("upstream_inference_cost") if isinstance(details, dict) else None
        upstream = money(beside)
        return None if upstream is None else cost + upstream

    @property
    def has_extras(self) -> bool:
        """Whether the provider ran tools of its own, which it charges for beside the tokens."""
        used = self.raw.get("server_tool_use")
        return isinstance(used, dict) and any(count(value) != 0 for value in used.values())

    def feed(self, piece: bytes) -> None:
        """Look at the next bytes of the answer, as they came."""
        if self._blind or not piece:
            return
        look = self._look_at_lines if self._is_stream else self._collect
        if self._decode is None:
            look(piece)
            return
        try:
            for portion in self._decode(piece):
                look(portion)
        except Undecodable:
            self._blind = True

    def finish(self) -> None:
        """Look at what is left. Call it once, after the last piece."""
        rest = bytes(self._rest)
        self._rest = bytearray()
        if self._blind or not rest:
            return
        if self._is_stream:
            self._look_at_line(rest)
        elif not self._overflowed:
            self._look_at_document(rest)
        else:
            self._look_at_end(rest)

    # -- event streams ------------------------------------------------------------------------
    def _look_at_lines(self, piece: bytes) -> None:
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        if end < 0:
            self._rest += piece
            if len(self._rest) > MAX_LINE_BYTES:
                self._blind = True
                self._rest = bytearray()
            return
        whole = piece[: end + 1]
        if self._rest:
            whole = bytes(self._rest) + whole
        self._rest = bytearray(piece[end + 1 :])
        # The model's own text cannot hold the needle: inside a JSON string its quotes are escaped.
        if self._seen_data and _NEEDLE not in whole:
            return
        for line in whole.splitlines():
            self._look_at_line(line)

    def _look_at_line(self, line: bytes) -> None:
        # The first event names the model, whether or not it tells of usage.
        if self._seen_data and not (_NEEDLE in line and _USAGE_OBJECT.search(line)):
            return
        data = _DATA.match(line)
        if data is None:
            return
        self._seen_data = True
        self._look_at_document(line[data.end() :])

    # -- one document -------------------------------------------------------------------------
    def _collect(self, piece: bytes) -> None:
        self._rest += piece
        if len(self._rest) > MAX_DOCUMENT_BYTES:
            self._overflowed = True
            del self._rest[:-_SEARCHED_END]

    def _look_at_document(self, document: bytes) -> None:
        try:
            reading = self._dialect.read(document)
        except _UNREADABLE:
            return
        self.model = self.model or reading.model
        if reading.usage:
            self.is_final = self.is_final or reading.is_final
            self.raw = merge_totals(self.raw, reading.usage)

    def _look_at_end(self, end: bytes) -> None:
        """The last usage object in the end of a document too large to be parsed whole."""
        for found in reversed(list(_USAGE_OBJECT.finditer(end))):
            usage = _object_at(end, found.end())
            if usage and self._dialect.usage(usage) != Usage():
                self.raw = usage
                self.is_final = True
                return


def _object_at(text: bytes, start: int) -> dict[str, Any] | None:
    """The JSON object that begins at `start`, tried at each brace that may end it."""
    closing = text.find(b"}", start)
    while 0 <= closing < start + MAX_USAGE_BYTES:
        try:
            return usage_object(msgspec.Raw(text[start : closing + 1]))
        except _UNREADABLE:
            closing = text.find(b"}", closing + 1)
    return None
