"""A socket before the Docker daemon's, on which a test refuses, delays or changes a request."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.engine.running import Installation

REAL = "/var/run/docker.sock"
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)


@dataclass
class Asked:
    """One request. A rule may change its body."""

    method: str
    path: str
    body: bytes = b""

    @property
    def removes(self) -> str:
        """The id of the container that this removes, or ""."""
        found = re.search(r"/containers/([0-9a-f]{64})(?:\?|$)", self.path)
        return found[1] if found and self.method == "DELETE" else ""

    @property
    def creates(self) -> bool:
        return self.method == "POST" and "/containers/create" in self.path


Rule = Callable[[Asked], str | None]


@dataclass
class Door:
    """Args:
    path: of its socket.
    rule: given each request; a text it returns is the error the client gets.
    """

    path: Path
    rule: Rule | None = None
    seen: list[Asked] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        return {"DOCKER_HOST": f"unix://{self.path}"}

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(client,), daemon=True).start()

    def _one(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            if (read := _request(client)) is None:
                return
            head, asked = read
            self.seen.append(asked)
            error = self.rule(asked) if self.rule else None
            if error is not None:
                client.sendall(_refusal(error))
                return
            with socket.socket(socket.AF_UNIX) as daemon:
                daemon.connect(REAL)
                daemon.sendall(_onward(head, asked.body))
                back = threading.Thread(target=_pump, args=(daemon, client), daemon=True)
                back.start()
                _pump(client, daemon)
                back.join()


def _request(client: socket.socket) -> tuple[bytes, Asked] | None:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = client.recv(65536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    while length and len(body) < int(length[1]):
        body += client.recv(65536)
    method, path = head.split(b"\r\n")[0].decode().split()[:2]
    return head, Asked(method, path, body)


def _onward(head: bytes, body: bytes) -> bytes:
    """One request a connection, unless it is taken over for a stream."""
    if _LENGTH.search(head):
        head = _LENGTH.sub(b"\r\nContent-Length: %d" % len(body), head)
    if b"\r\nupgrade:" not in head.lower():
        head += b"\r\nConnection: close"
    return head + b"\r\n\r\n" + body


def _refusal(message: str) -> bytes:
    body = json.dumps({"message": message}).encode()
    return (
        b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body)
    )


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            sink.sendall(piece)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def door_before(made: Installation) -> Iterator[Door]:
    """Let this installation's commands reach the daemon through a door, for a block."""
    door = Door(made.ground / "d.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(door.path))
        listener.listen(64)
        thread = threading.Thread(target=door.serve, args=(listener,), daemon=True)
        thread.start()
        made.environment |= door.environment
        try:
            yield door
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)
