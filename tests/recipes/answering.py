"""A server in a thread that says one thing to everybody."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

LATE_S = 1.5  # later than socat waits by itself


@contextmanager
def answering(server: socket.socket, answer: bytes) -> Iterator[None]:
    """Give every connection this answer and close it; `LATE` is answered after its sender's end."""

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client, suppress(OSError):  # a probe may be gone before it is answered
                if client.recv(4096).startswith(b"LATE"):
                    while client.recv(4096):
                        continue
                    time.sleep(LATE_S)
                client.sendall(answer)

    server.listen()
    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)
