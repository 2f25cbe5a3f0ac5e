"""A provider far away: a pipe that holds every byte back for half a round trip each way.

    python -m tests.bench.relay.distance --to PORT --round-trip-ms 30

Prints its port as JSON. It knows nothing of what passes. Over a real distance a connection takes
a round trip before its first byte may leave, so the first bytes of each are held longer by one.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
from collections import deque
from typing import cast


class Leg(asyncio.Protocol):
    """One end of the pipe; what it receives, the other end sends later."""

    def __init__(self, delay_s: float, first_s: float = 0.0) -> None:
        self.other: Leg | None = None
        self._delay_s = delay_s
        self._first_s = first_s
        self._underway: deque[bytes | None] = deque()
        self._transport: asyncio.Transport | None = None
        self._waiting: list[bytes] = []
        self._open_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._open_at = asyncio.get_running_loop().time() + self._first_s
        for data in self._waiting:
            self._transport.write(data)
        self._waiting.clear()

    def data_received(self, data: bytes) -> None:
        self._carry(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._carry(None)

    def send(self, data: bytes | None) -> None:
        """Send what came from the other end; None closes."""
        if self._transport is None:
            self._waiting += [data] if data else []
        elif data is None:
            self._transport.close()
        elif not self._transport.is_closing():
            self._transport.write(data)

    def _carry(self, data: bytes | None) -> None:
        loop = asyncio.get_running_loop()
        self._underway.append(data)
        # Each timer takes the oldest, so timers of one instant cannot change the order.
        loop.call_at(max(loop.time(), self._open_at) + self._delay_s, self._arrive)

    def _arrive(self) -> None:
        if self.other is not None:
            self.other.send(self._underway.popleft())


class Near(Leg):
    """The end that accepts connections; each opens the far one."""

    def __init__(self, port: int, round_trip_s: float) -> None:
        super().__init__(round_trip_s / 2, first_s=round_trip_s)
        self._port = port
        self._opening: asyncio.Task[object] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        far = Leg(self._delay_s)
        self.other, far.other = far, self
        loop = asyncio.get_running_loop()
        self._opening = loop.create_task(
            loop.create_connection(lambda: far, "127.0.0.1", self._port)
        )


async def _serve(port: int, round_trip_s: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Near(port, round_trip_s), "127.0.0.1", 0)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="A pipe with a round trip.")
    parser.add_argument("--to", type=int, required=True, metavar="PORT")
    parser.add_argument("--round-trip-ms", type=float, required=True)
    given = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(given.to, given.round_trip_ms / 1000))


if __name__ == "__main__":
    main()
