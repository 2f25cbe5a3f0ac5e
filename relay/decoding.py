"""Reading compressed answers on the side, a little at a time and never without a limit.

The client gets the compressed bytes as they are. What is unpacked here is only looked at for its
usage, so anything unreadable ends the looking and nothing else. Decoders are imported on use.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache

MAX_DECODED_BYTES = 256 * 1024 * 1024  # of one answer
_PORTION = 64 * 1024  # decoded bytes per step, where the decoder can be told
_SIP = 512  # encoded bytes per step, where it cannot

Decode = Callable[[bytes], Iterator[bytes]]

# What an answer may come in, because we can read it.
READABLE = ("gzip", "br", "zstd", "deflate")
_QUALITY_ZERO = re.compile(rb"\s*q\s*=\s*0(?:\.0*)?\s*")


class Undecodable(Exception):
    """The answer cannot be unpacked, or not within the limit."""


@lru_cache(maxsize=64)
def readable_encodings(accept_encoding: bytes | None) -> bytes:
    """The Accept-Encoding to send for the one a client sent: its offer, as far as we read it.

    `gzip;q=0` refuses gzip; a client that offers nothing readable gets `identity`.
    """
    offered: list[str] = []
    for item in (accept_encoding or b"").split(b","):
        coding, *parameters = item.split(b";")
        name = coding.strip().lower().decode("latin-1")
        if any(_QUALITY_ZERO.fullmatch(parameter) for parameter in parameters):
            continue
        offered += ["gzip"] if name == "*" else [name]
    chosen = [name for name in dict.fromkeys(offered) if name in READABLE]
    return ", ".join(chosen or ["identity"]).encode()


def decoder(content_encoding: bytes) -> Decode:
    """A function that unpacks an answer piece by piece.

    Args:
        content_encoding: the header's value; several encodings are undone in reverse order.

    Raises:
        Undecodable: there is no decoder for it.
    """
    names = [name.strip().lower() for name in content_encoding.split(b",") if name.strip()]
    if len(names) > 2:
        raise Undecodable("too many content encodings")
    steps = [_step(name) for name in reversed(names) if name != b"identity"]
    budget = MAX_DECODED_BYTES

    def decode(piece: bytes) -> Iterator[bytes]:
        nonlocal budget
        for portion in _chain(steps, piece):
            budget -= len(portion)
            if budget < 0:
                raise Undecodable("the unpacked answer is too large")
            yield portion

    return decode


def _chain(steps: list[Decode], piece: bytes) -> Iterator[bytes]:
    if not steps:
        yield piece
        return
    for portion in steps[0](piece):
        yield from _chain(steps[1:], portion)


def _step(name: bytes) -> Decode:
    if name in (b"gzip", b"x-gzip"):
        return _zlib(zlib.MAX_WBITS | 16)
    if name == b"deflate":
        return _deflate()
    if name == b"br":
        return _brotli()
    if name == b"zstd":
        return _zstandard()
    raise Undecodable("an encoding that was not asked for")


def _zlib(window: int) -> Decode:
    unpacker = zlib.decompressobj(window)

    def decode(piece: bytes) -> Iterator[bytes]:
        nonlocal unpacker
        while piece:
            if unpacker.eof:  # gzip files may follow one another
                unpacker = zlib.decompressobj(window)
            try:
                portion = unpacker.decompress(piece, _PORTION)
            except zlib.error:
                raise Undecodable("damaged zlib data") from None
            if portion:
                yield portion
            piece = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail

    return decode


def _deflate() -> Decode:
    """`deflate` is zlib by the standard and raw deflate by habit: the first byte tells."""
    chosen: Decode | None = None

    def decode(piece: bytes) -> Iterator[bytes]:
        nonlocal chosen
        if not piece:
            return
        if chosen is None:
            is_zlib = piece[0] & 0x0F == 8 and piece[0] >> 4 <= 7
            chosen = _zlib(zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS)
        yield from chosen(piece)

    return decode


def _brotli() -> Decode:
    import brotli  # type: ignore[import-untyped]

    unpacker = brotli.Decompressor()

    def decode(piece: bytes) -> Iterator[bytes]:
        try:
            portion = unpacker.process(piece, output_buffer_limit=_PORTION)
            while portion:
                yield portion
                if unpacker.can_accept_more_data():
                    break
                portion = unpacker.process(b"", output_buffer_limit=_PORTION)
        except brotli.error:
            raise Undecodable("damaged brotli data") from None

    return decode


def _zstandard() -> Decode:
    import zstandard

    unpacker = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)

    def decode(piece: bytes) -> Iterator[bytes]:
        # It cannot be told how much to give at once, so it gets little at once.
        for start in range(0, len(piece), _SIP):
            try:
                portion = unpacker.decompress(piece[start : start + _SIP])
            except (zstandard.ZstdError, MemoryError):
                raise Undecodable("damaged zstandard data") from None
            if portion:
                yield portion

    return decode
