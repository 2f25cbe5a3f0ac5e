"""A provider that costs next to nothing, in a process of its own.

    python -m tests.bench.relay.upstream [--certificate DIRECTORY]

Prints its ports as JSON. A call says in its header `x-bench` what it wants to be answered with:

    call        one JSON document
    event       a stream of one event
    paced N     a stream of N events, 250 a second, each with the time at which it was sent
    flood T     as many events as the connection takes, until the time T of `time.monotonic`
    hold S      one event at once, and the end of the stream after S seconds

Each event is an HTTP chunk of its own, as providers send them, and holds the sign @ once at its
start and once at its end, so that a client can count events without parsing anything.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import socket
import ssl
import time
from pathlib import Path
from typing import cast

import uvloop

PACE_S = 0.004
SIGNS = 2  # @ in each event
SEND_BUFFER = 256 * 1024  # so that a flood waits in nobody's kernel for its reader
USAGE = b'"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}'
CALL_END = b'"end"}'
CALL = b'{"id":"c","object":"chat.completion","model":"m",%b,"note":%b' % (USAGE, CALL_END)
STREAM_END = b"0\r\n\r\n"
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
_CALL = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
    len(CALL),
    CALL,
)
_WANTED = re.compile(rb"\r\nx-bench: *([a-z]+) *([0-9.]*)\r\n")
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)\r\n")


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(stamp: int) -> bytes:
    """One event of a chat stream in its chunk; `stamp` is a time of `time.monotonic_ns`."""
    delta = b'{"id":"@%020d@","choices":[{"index":0,"delta":{"content":" word"}}]}' % stamp
    return chunk(b"data: %b\n\n" % delta)


_ONE = event(0)
_BLOCK = _ONE * 500
_LAST = chunk(b'data: {"id":"c","choices":[],%b}\n\ndata: [DONE]\n\n' % USAGE) + STREAM_END


class Model(asyncio.Protocol):
    """One connection; calls follow one another on it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._loop = asyncio.get_running_loop()
        transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER
        )
        self._received = b""
        self._owed = 0  # bytes of the request body that have not come yet
        self._wanted = (b"", b"")
        self._flood_until = 0.0
        self._is_paused = False

    def data_received(self, data: bytes) -> None:
        if self._owed:
            self._owed -= len(data)
        else:
            self._received += data
            head, separator, body = self._received.partition(b"\r\n\r\n")
            if not separator:
                return
            self._received = b""
            head = head.lower() + b"\r\n"
            length, wanted = _LENGTH.search(head), _WANTED.search(head)
            self._owed = (int(length[1]) if length else 0) - len(body)
            self._wanted = (wanted[1], wanted[2]) if wanted else (b"call", b"")
        if self._owed <= 0:
            self._owed = 0
            self._answer(*self._wanted)

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        if self._flood_until:
            self._flood()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_paused = True
        self._flood_until = 0.0

    def _answer(self, kind: bytes, value: bytes) -> None:
        if kind == b"call":
            self._transport.write(_CALL)
        elif kind == b"event":
            self._transport.write(_STREAM_HEAD + _ONE + STREAM_END)
        elif kind == b"paced":
            self._transport.write(_STREAM_HEAD)
            self._loop.call_later(PACE_S, self._send_next, int(value))
        elif kind == b"flood":
            self._transport.write(_STREAM_HEAD)
            self._flood_until = float(value)
            self._flood()
        elif kind == b"hold":
            self._transport.write(_STREAM_HEAD + _ONE)
            self._loop.call_later(float(value), self._end)
        else:
            self._transport.abort()

    def _send_next(self, left: int) -> None:
        if left == 0:
            self._end()
        elif not self._transport.is_closing():
            self._transport.write(event(time.monotonic_ns()))
            self._loop.call_later(PACE_S, self._send_next, left - 1)

    def _flood(self) -> None:
        while not self._is_paused:
            if time.monotonic() >= self._flood_until:
                self._flood_until = 0.0
                self._end()
                return
            self._transport.write(_BLOCK)

    def _end(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(_LAST)


async def _serve(certificate: Path | None) -> None:
    loop = asyncio.get_running_loop()
    plain = await loop.create_server(Model, "127.0.0.1", 0, backlog=1024)
    ports = {"http": plain.sockets[0].getsockname()[1]}
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
        secure = await loop.create_server(Model, "127.0.0.1", 0, backlog=1024, ssl=context)
        ports["https"] = secure.sockets[0].getsockname()[1]
    print(json.dumps(ports), flush=True)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="A provider that costs next to nothing.")
    parser.add_argument("--certificate", type=Path)
    given = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(_serve(given.certificate))


if __name__ == "__main__":
    main()
