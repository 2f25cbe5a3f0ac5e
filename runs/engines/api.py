"""The Docker daemon's own socket, for the questions a run asks most.

An optimisation, never a need: the client takes 12 to 30 ms of a processor for what the socket
answers in 1 to 3. Whatever is not a plain answer, `Unanswered` included, sends the caller back to
the client, whose errors are the ones people know.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

DEFAULT_SOCKET = "/var/run/docker.sock"
ANSWER_LIMIT = 16 * 1024 * 1024  # bytes
PATIENCE_S = 30.0


class Unanswered(Exception):
    """The socket gave no answer that could be used; ask the client instead."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes


def local_socket() -> str | None:
    """The socket the client would use without a question; None where that takes asking it."""
    if host := os.environ.get("DOCKER_HOST"):
        return host.removeprefix("unix://") if host.startswith("unix:///") else None
    if os.environ.get("DOCKER_CONTEXT"):
        return None
    folder = os.environ.get("DOCKER_CONFIG") or str(Path.home() / ".docker")
    try:
        chosen = json.loads(Path(folder, "config.json").read_text()).get("currentContext")
    except FileNotFoundError:
        chosen = None
    except (OSError, ValueError, AttributeError):
        return None
    return DEFAULT_SOCKET if chosen in (None, "", "default") else None


class SocketApi:
    """Args:
    socket: path of the daemon's unix socket.
    """

    def __init__(self, socket: str) -> None:
        self._socket = socket

    async def image(self, tag: str) -> Answer:
        return await self._ask("GET", f"/images/{quote(tag, safe='/:@')}/json")

    async def container(self, container: str) -> Answer:
        return await self._ask("GET", f"/containers/{quote(container, safe='')}/json")

    async def containers(self, labels: Mapping[str, str]) -> Answer:
        """Every container with these labels, as the daemon lists them."""
        wanted = {"label": [f"{name}={value}" for name, value in labels.items()]}
        query = urlencode({"all": "true", "filters": json.dumps(wanted)})
        return await self._ask("GET", f"/containers/json?{query}")

    async def remove(self, containers: Sequence[str]) -> list[Answer]:
        """Kill and remove them all at once, anonymous volumes included."""
        paths = [f"/containers/{quote(each, safe='')}?force=true&v=true" for each in containers]
        return list(await asyncio.gather(*(self._ask("DELETE", path) for path in paths)))

    async def _ask(self, method: str, target: str) -> Answer:
        """One request on a connection of its own. HTTP/1.0: the answer ends with the connection."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                reader, writer = await asyncio.open_unix_connection(self._socket)
                try:
                    writer.write(f"{method} {target} HTTP/1.0\r\nHost: docker\r\n\r\n".encode())
                    data = await reader.read(1)
                    while len(data) < ANSWER_LIMIT and (more := await reader.read(1 << 16)):
                        data += more
                finally:
                    writer.close()
        except (OSError, TimeoutError) as exc:
            raise Unanswered(str(exc)) from None
        return _parsed(data)


def _parsed(data: bytes) -> Answer:
    head, separator, body = data.partition(b"\r\n\r\n")
    words = head.split(b"\r\n")[0].split()
    if not separator or len(words) < 2 or not words[0].startswith(b"HTTP/1."):
        raise Unanswered("no HTTP answer")
    if b"\r\ntransfer-encoding:" in head.lower():
        raise Unanswered("an answer in chunks")
    if not words[1].isdigit():
        raise Unanswered("no status")
    return Answer(int(words[1]), body)
