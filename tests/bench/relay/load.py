"""The client of the bench, on raw sockets: it must be much cheaper than what it measures.

Its functions run in a process of their own (see `Client`) and each opens the connections it needs,
warms them up, measures, and closes them.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.bench.relay.upstream import CALL_END, SIGNS, STREAM_END

TOKEN = "bench-token"
RECEIVE_BUFFER = 256 * 1024  # of each of many connections
SMALL = 1000  # bytes of conversation in a usual call
WARM_UP = 10  # calls
PATIENCE_S = 5.0  # how long a crowd of connections may take to be served
_WHOLE_S = 120.0  # for one function
T = TypeVar("T")


@dataclass(frozen=True)
class Address:
    port: int
    authority: str | None = None  # a certificate to trust: TLS


@dataclass(frozen=True)
class Rate:
    per_second: float
    cpu_each_s: float  # of the process that was asked, for one
    served: int  # connections


@dataclass(frozen=True)
class Held:
    before_mb: float
    during_mb: float
    served: int


class Client:
    """The process that measures. One function runs at a time."""

    def __enter__(self) -> Client:
        # Started anew, not forked: it shall hold nothing but what it needs.
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, mp_context=context)
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def run(self, function: Callable[..., T], *arguments: object) -> T:
        return self._pool.submit(function, *arguments).result(timeout=_WHOLE_S)


def request(kind: str, size: int = SMALL, stream: bool = True) -> bytes:
    """A call that asks for an answer of that kind and carries about `size` bytes of messages."""
    text = 'It was a bright cold day, said the \\"clock\\", and struck thirteen.\\n' * 25
    whole, rest = divmod(size, len(text))
    messages = ",".join(
        f'{{"role":"user","content":"{part}"}}' for part in [text] * whole + ["x" * rest]
    )
    body = (
        f'{{"model":"m","stream":{str(stream).lower()},"max_completion_tokens":8000,'
        f'"messages":[{messages}]}}'
    ).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\n"
        f"authorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\n"
        f"x-bench: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


# -- one connection, blocking ----------------------------------------------------------------------
def first_bytes(address: Address, calls: int, seconds: float) -> list[float]:
    """Seconds from the start of a call to the first byte of its one event.

    At most `calls` of them, one after the other; fewer when `seconds` are over before.
    """
    return _timed(address, request("event"), b"data:", calls, seconds)


def whole_bodies(
    address: Address, size: int, calls: int, seconds: float, pid: int
) -> tuple[list[float], float]:
    """Seconds of calls with a large body, and CPU seconds of a call in the process `pid`."""
    asked = request("call", size, stream=False)
    _timed(address, asked, CALL_END, 2, seconds)
    began = cpu_seconds(pid)
    times = _timed(address, asked, CALL_END, calls, seconds, warm_up=0)
    return times, (cpu_seconds(pid) - began) / len(times)


def event_ages(address: Address, events: int) -> list[float]:
    """Seconds that each of the paced events of one stream was under way."""
    with _connected(address) as connection:
        _finish(connection, request("event"), b"data:")
        connection.sendall(request(f"paced {events}"))
        ages: list[float] = []
        rest = b""
        while not rest.endswith(STREAM_END):
            rest += _some(connection)
            now = time.monotonic_ns()
            *stamps, rest = rest.split(b"\n\n")
            ages += [(now - int(one.split(b"@")[1])) / 1e9 for one in stamps if b"@" in one]
        return ages


def _timed(
    address: Address,
    asked: bytes,
    first: bytes,
    calls: int,
    seconds: float,
    warm_up: int = WARM_UP,
) -> list[float]:
    with _connected(address) as connection:
        for _ in range(warm_up):
            _finish(connection, asked, first)
        until = time.perf_counter() + seconds
        times = [_finish(connection, asked, first)]
        while len(times) < calls and time.perf_counter() < until:
            times.append(_finish(connection, asked, first))
        return times


def _finish(connection: socket.socket, asked: bytes, first: bytes) -> float:
    """Make one call and read its answer whole; seconds until `first` was in it."""
    began = time.perf_counter()
    connection.sendall(asked)
    answer, at = b"", 0.0
    while not at or not _is_whole(answer):
        answer += _some(connection)
        if not at and first in answer:
            at = time.perf_counter() - began
    if not answer.startswith(b"HTTP/1.1 200"):
        raise ConnectionError(answer[:80].decode("latin-1"))
    return at


def _is_whole(answer: bytes) -> bool:
    if answer.endswith(STREAM_END):
        return True
    return answer.endswith(CALL_END) and b"chunked" not in answer.partition(b"\r\n\r\n")[0].lower()


def _some(connection: socket.socket) -> bytes:
    piece = connection.recv(262144)
    if not piece:
        raise ConnectionError("the connection ended early")
    return piece


@contextlib.contextmanager
def _connected(address: Address) -> Iterator[socket.socket]:
    connection = socket.create_connection(("127.0.0.1", address.port), timeout=20)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if address.authority is not None:
        context = ssl.create_default_context(cafile=address.authority)
        connection = context.wrap_socket(connection, server_hostname="localhost")
    with connection:
        yield connection


# -- many connections ------------------------------------------------------------------------------
def call_rate(address: Address, connections: int, seconds: float, pid: int) -> Rate:
    """Calls on keep-alive connections, each sending its next as soon as it has an answer."""
    asked = request("call", stream=False)
    with _connected(address) as one:
        one.sendall(asked)
        head = _some(one).partition(b"\r\n\r\n")[0].lower()
    end = STREAM_END if b"chunked" in head else CALL_END
    with _Crowd(address, connections, asked) as crowd:
        unfinished: dict[int, bytes] = {}

        def run(until: float, stop: Callable[[], bool] = lambda: False) -> int:
            done = 0
            for descriptor, piece in crowd.pieces(until):
                answer = unfinished.pop(descriptor, b"") + piece
                if answer.endswith(end):
                    done += 1
                    crowd.ask(descriptor)
                else:
                    unfinished[descriptor] = answer
                if len(crowd.served) == connections and stop():
                    break
            return done

        run(time.perf_counter() + 1.0, stop=lambda: True)  # until every connection was served
        began, cpu = time.perf_counter(), cpu_seconds(pid)
        done = run(began + seconds)
        took, used = time.perf_counter() - began, cpu_seconds(pid) - cpu
        return Rate(done / took, used / max(done, 1), len(crowd.served))


def event_rate(address: Address, streams: int, seconds: float, pid: int) -> Rate:
    """Events of streams that come as fast as they can for so many seconds."""
    asked = request(f"flood {time.monotonic() + seconds:.3f}")
    with _Crowd(address, streams, asked) as crowd:
        began, cpu = time.perf_counter(), cpu_seconds(pid)
        last, signs, ended = began, 0, 0
        ends: dict[int, bytes] = {}
        for descriptor, piece in crowd.pieces(began + seconds + PATIENCE_S):
            signs += piece.count(b"@")
            ends[descriptor] = (ends.get(descriptor, b"") + piece[-5:])[-5:]
            if ends[descriptor] == STREAM_END:
                ended += 1
                last = time.perf_counter()
                if ended == streams:
                    break
        events = max(signs // SIGNS, 1)
        took = max(last - began, seconds)
        return Rate(events / took, (cpu_seconds(pid) - cpu) / events, ended)


def hold_streams(address: Address, streams: int, pid: int) -> Held:
    """Memory of the process `pid` while that many streams are open, and had a first event."""
    before = resident_mb(pid)
    with _Crowd(address, streams, request(f"hold {PATIENCE_S + 1}")) as crowd:
        had_event: set[int] = set()
        for descriptor, piece in crowd.pieces(time.perf_counter() + PATIENCE_S):
            if b"@" in piece:
                had_event.add(descriptor)
            if len(had_event) == streams:
                break
        return Held(before, resident_mb(pid), len(had_event))


class _Crowd:
    """Connections opened all at once, each sending the same request when it may."""

    def __init__(self, address: Address, count: int, asked: bytes) -> None:
        self._asked = asked
        self._poll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        self.served: set[int] = set()  # had some answer
        for _ in range(count):
            one = socket.socket()
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.connect_ex(("127.0.0.1", address.port))
            self._sockets[one.fileno()] = one
            self._poll.register(one.fileno(), select.EPOLLOUT)

    def __enter__(self) -> _Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._sockets.values():
            one.close()
        self._poll.close()

    def ask(self, descriptor: int) -> None:
        self._sockets[descriptor].send(self._asked)

    def pieces(self, until: float) -> Iterator[tuple[int, bytes]]:
        """What arrives on which connection, until that time of `time.perf_counter`."""
        sockets, served = self._sockets, self.served
        while (left := until - time.perf_counter()) > 0:
            for descriptor, what in self._poll.poll(left):
                if what & select.EPOLLIN:
                    with contextlib.suppress(BlockingIOError, ConnectionResetError):
                        if piece := sockets[descriptor].recv(262144):
                            served.add(descriptor)
                            yield descriptor, piece
                            continue
                elif what == select.EPOLLOUT:
                    self._poll.modify(descriptor, select.EPOLLIN)
                    self.ask(descriptor)
                    continue
                self._poll.unregister(descriptor)  # refused, reset or ended


# -- other processes -------------------------------------------------------------------------------
def cpu_seconds(pid: int) -> float:
    """What a process used so far, its ended threads included."""
    return time.clock_gettime((~pid << 3) | 2)  # the kernel's name for that process's clock


def resident_mb(pid: int) -> float:
    fields: dict[str, Any] = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    return int(fields["VmRSS"].split()[0]) / 1024
