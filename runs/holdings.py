"""Everything a run takes, and the one way it is given back.

Giving back is re-entrant, never skipped, and ends with a question to the engine: what it does not
confirm to be gone is not called gone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType

from runs.box import Box
from runs.engines.base import LABEL_ROLE, ContainerRow, ContainerSpec, Engine, EngineError
from runs.undertaker import Undertaker

ATTEMPTS = 3
PAUSE_S = 0.5


def agents_first(rows: Iterable[ContainerRow]) -> list[str]:
    """Their ids, a link after the agent that lives in its namespaces."""
    return [row.id for row in sorted(rows, key=lambda row: row.labels.get(LABEL_ROLE) == "link")]


class Holdings:
    """What one run holds on its engine and on this host.

    Args:
        labels: the labels that every container and network of this run carries.
        box: its private directory, already made.
    """

    def __init__(self, engine: Engine, labels: Mapping[str, str], box: Box) -> None:
        self.engine = engine
        self.labels = dict(labels)
        self.box = box
        self.keeps = False  # by the person's wish, everything stays, stopped
        self.left: list[str] = []  # sentences about what could not be given back
        self._making: list[asyncio.Future[str]] = []
        self._network = ""
        self._closers: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        self._undertaker: Undertaker | None = None
        self._given_back = False

    async def __aenter__(self) -> Holdings:
        self._undertaker = Undertaker(self.engine.removal_script(self.labels), self.box)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.give_back()

    def take(self, what: str, close: Callable[[], Awaitable[None]]) -> None:
        """Hold something that is closed by awaiting `close`; what is taken last is closed first."""
        self._closers.append((what, close))

    async def create(self, spec: ContainerSpec) -> str:
        """Create a container. It is held even if the wait for it is cancelled half-way."""
        making = asyncio.ensure_future(self.engine.create(spec))
        self._making.append(making)
        return await asyncio.shield(making)

    async def network(self, name: str, *, internal: bool) -> str:
        self._network = await self.engine.create_network(name, self.labels, internal=internal)
        return self._network

    async def give_back(self) -> None:
        """Remove containers while the rest closes, ask whether they are gone, dismiss the watch."""
        if self._given_back:
            return
        self._given_back = True
        await asyncio.gather(self._let_go(), self._close())
        if self._undertaker is not None:
            if self.left and not self.keeps:
                self._undertaker.let_work()
            else:
                self._undertaker.dismiss()
        with contextlib.suppress(FileNotFoundError):
            self.box.remove()

    async def _close(self) -> None:
        while self._closers:
            what, close = self._closers.pop()
            try:
                await close()
            except OSError as exc:
                self.left.append(f"{what} did not close: {exc}")

    async def _let_go(self) -> None:
        if self.keeps:
            await self._stop_containers()
        else:
            await self._remove_containers()
            await self._remove_networks()

    async def _stop_containers(self) -> None:
        """The link stays with the agent: podman cannot remove one without the other."""
        for container in reversed(await self._made()):
            try:
                await self.engine.stop(container, grace_s=0)
            except EngineError as exc:
                self.left.append(f"kept container {container[:12]} may still run: {exc}")

    async def _remove_containers(self) -> None:
        if not self._making:
            return  # an engine that is down need not be asked
        # what joins another one's namespaces was made after it, and has to go before it
        going = list(reversed(await self._made()))
        error = ""
        for attempt in range(ATTEMPTS):
            try:
                await self.engine.remove(going)
                error = "the engine still lists it"
            except EngineError as exc:
                error = str(exc)
            try:
                # one whose creation was broken off may be there as well
                going = agents_first(await self.engine.containers(self.labels))
            except EngineError as exc:
                error = str(exc)
            else:
                if not going:
                    return
            if attempt + 1 < ATTEMPTS:
                await asyncio.sleep(PAUSE_S * (attempt + 1))
        names = ", ".join(c[:12] for c in going) or "what this run made"
        self.left.append(f"could not remove {names}: {error}")

    async def _made(self) -> list[str]:
        """What was created, a creation under way included: it would appear after we looked."""
        done, late = await asyncio.wait(self._making, timeout=self.engine.creation_patience_s)
        for making in late:
            making.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        return [each.result() for each in self._making if each in done and not each.exception()]

    async def _remove_networks(self) -> None:
        if not self._network:
            return
        try:
            await self.engine.remove_network(self._network)
        except EngineError as exc:
            self.left.append(f"could not remove the run's network: {exc}")
