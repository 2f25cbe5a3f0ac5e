"""The name a TLS client asks for, read out of its first bytes.

Many hosts share the edge of one delivery network, which picks the host by this name: a tunnel to
a listed host would reach them all if the name in its first message were not looked at.
"""

from __future__ import annotations

MAX_HELLO_BYTES = 16 * 1024
_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME, _HOST_NAME = 22, 1, 0, 0
_CONTENT_TYPES = range(20, 25)  # of a TLS record


class UnreadableHello(ValueError):
    """It is TLS, and no greeting whose name can be told for certain."""


class _Short(Exception):
    """The bytes end before the value does."""


def names_asked_for(data: bytes) -> tuple[str, ...] | None:
    """The host names in the beginning of what a client sends.

    Usually it is one; there is none when the client gives none or what it sends is no TLS. None
    means that more bytes are needed.

    Raises:
        UnreadableHello: it is TLS but no ClientHello, or a damaged or an oversized one.
    """
    if not data or data[0] not in _CONTENT_TYPES:
        return () if data else None
    if len(data) < 2:
        return None
    if data[1] != 3:  # the major version in every TLS record
        return ()
    try:
        message = _handshake(data)
    except _Short:
        if len(data) > MAX_HELLO_BYTES:
            raise UnreadableHello("the TLS greeting is too large") from None
        return None
    try:
        return tuple(_names(message))
    except _Short:
        raise UnreadableHello("the TLS greeting is damaged") from None


def _handshake(data: bytes) -> bytes:
    """The body of the first handshake message, joined from its records."""
    message = b""
    rest = _Bytes(data)
    while len(message) < 4 or len(message) < 4 + int.from_bytes(message[1:4], "big"):
        if rest.number(1) != _HANDSHAKE:
            raise UnreadableHello("TLS does not begin with its greeting")
        rest.take(2)
        part = rest.take(rest.number(2))
        message += part
        if not part or message[0] != _CLIENT_HELLO:
            raise UnreadableHello("TLS does not begin with its greeting")
    return message[4 : 4 + int.from_bytes(message[1:4], "big")]


def _names(message: bytes) -> list[str]:
    hello = _Bytes(message)
    hello.take(2 + 32)  # version, random
    hello.take(hello.number(1))  # session
    hello.take(hello.number(2))  # cipher suites
    hello.take(hello.number(1))  # compression
    if not hello.left:
        return []
    extensions = _Bytes(hello.take(hello.number(2)))
    names: list[str] = []
    while extensions.left:
        kind = extensions.number(2)
        body = extensions.take(extensions.number(2))
        if kind != _SERVER_NAME:
            continue
        entries = _Bytes(body)
        entries = _Bytes(entries.take(entries.number(2)))
        while entries.left:
            is_host = entries.number(1) == _HOST_NAME
            name = entries.take(entries.number(2))
            if is_host:
                names.append(name.decode("latin-1").lower().removesuffix("."))
    return names


class _Bytes:
    """Reads numbers and pieces off the front of a byte string."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise _Short
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")
