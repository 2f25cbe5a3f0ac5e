"""The egress door: the one way from a sealed run to hosts of the outside that its owner listed.

It speaks HTTP CONNECT and nothing else, on a unix socket of its own. The client names a host; the
door looks it up, judges name and address, connects to the address it judged, and carries bytes.
What it cannot see (a tunnel is usually TLS) it does not judge, but for the name a TLS greeting
asks for, which must be the tunnel's. Every attempt ends as one record.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from relay.destinations import EgressRules
from relay.tunnel import MAX_HEAD_BYTES, EgressAttempt, EgressLimits, Tunnel

__all__ = ["EgressAttempt", "EgressLimits", "EgressRules", "serving_egress"]

BACKLOG = 256
_LOOKUP_THREADS = 4
_PROVIDER_KEPT_S = 60.0  # the provider's addresses are looked up again after that

_log = logging.getLogger(__name__)

Resolve = Callable[[str, int], Awaitable[list[str]]]


@contextlib.asynccontextmanager
async def serving_egress(
    rules: EgressRules,
    sock: socket.socket,
    on_attempt: Callable[[EgressAttempt], None],
    *,
    limits: EgressLimits | None = None,
    resolve: Resolve | None = None,
) -> AsyncIterator[None]:
    """Keep the door open inside the block. Leaving it ends every tunnel at once.

    Args:
        sock: a bound unix socket; closed afterwards.
        on_attempt: is handed each attempt when it has ended, in this event loop.
        resolve: gives the addresses of a name; the system's resolver unless given.
    """
    threads = ThreadPoolExecutor(_LOOKUP_THREADS, "egress-lookup")
    door = _Door(rules, on_attempt, limits or EgressLimits(), resolve or _resolver(threads))
    server = await asyncio.start_unix_server(
        door.connected, sock=sock, limit=MAX_HEAD_BYTES, backlog=BACKLOG
    )
    try:
        yield
    finally:
        server.close()
        await door.end()
        sock.close()
        # A look-up cannot be interrupted; nobody waits for one that is still under way.
        threads.shutdown(wait=False, cancel_futures=True)


def _resolver(threads: ThreadPoolExecutor) -> Resolve:
    """The system's resolver, in threads of its own: a slow name must not hold up anybody else."""

    async def resolve(host: str, port: int) -> list[str]:
        def look_up() -> list[str]:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            return list(dict.fromkeys(str(address[0]) for *_, address in found))

        return await asyncio.get_running_loop().run_in_executor(threads, look_up)

    return resolve


class _Door:
    def __init__(
        self,
        rules: EgressRules,
        on_attempt: Callable[[EgressAttempt], None],
        limits: EgressLimits,
        resolve: Resolve,
    ) -> None:
        self.rules = rules
        self.limits = limits
        self._resolve = resolve
        self._on_attempt = on_attempt
        self._tunnels: set[asyncio.Task[None]] = set()
        self._sequence = 0
        self._provider: tuple[float, frozenset[str]] = (float("-inf"), frozenset())

    @property
    def is_full(self) -> bool:
        return len(self._tunnels) > self.limits.max_tunnels

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(Tunnel(self, reader, writer).run())
        self._tunnels.add(task)
        task.add_done_callback(self._tunnels.discard)

    async def end(self) -> None:
        tunnels = list(self._tunnels)
        for tunnel in tunnels:
            tunnel.cancel()
        await asyncio.gather(*tunnels, return_exceptions=True)
        await asyncio.sleep(0)  # aborted transports close in the loop's next turn

    async def resolve(self, host: str, port: int) -> list[str]:
        return await self._resolve(host, port)

    def begin(self) -> EgressAttempt:
        self._sequence += 1
        return EgressAttempt(self._sequence, time.time())

    def file(self, attempt: EgressAttempt) -> None:
        attempt.ended_at = time.time()
        try:
            self._on_attempt(attempt)
        except Exception:  # noqa: BLE001
            _log.exception("the listener of the egress door failed on attempt %d", attempt.sequence)

    async def provider_addresses(self) -> frozenset[str]:
        """The model provider's addresses: another name for them is no way around the relay."""
        host = self.rules.provider_host
        looked_up, known = self._provider
        now = asyncio.get_running_loop().time()
        if not host or host.endswith(".invalid") or now - looked_up < _PROVIDER_KEPT_S:
            return known
        try:
            known = frozenset(await self.resolve(host, 443))
        except (OSError, UnicodeError):
            known = frozenset()
        self._provider = (now, known)
        return known
