"""Wakeups on an engine in this process: threads race for each of them."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from runs.engines.base import ContainerSpec, ContainerState, ImageFacts
from runs.mounts import WORK
from tests.accounts import ORDINARY
from tests.runs.fake_engine import FakeEngine

if TYPE_CHECKING:
    from assistants.models import Assistant

THREADS = 4
DONE = b'{"type": "result", "ok": true, "text": "done"}\n'
_START_S = 60.0


class _Exited:
    """A client whose container has printed everything and ended."""

    returncode = 0

    def __init__(self, printed: bytes) -> None:
        self.stdout, self.stderr = asyncio.StreamReader(), asyncio.StreamReader()
        self.stdout.feed_data(printed)
        self.stdout.feed_eof()
        self.stderr.feed_eof()

    async def wait(self) -> int:
        return self.returncode

    def kill(self) -> None:
        """It has ended."""


class InThisProcess(FakeEngine):
    """Its containers are one function call: a line in the memory, a report, a good end."""

    name = "in-this-process"

    def __init__(self) -> None:
        super().__init__()
        self._workspaces: dict[str, Path] = {}

    async def image(self, tag: str) -> ImageFacts | None:
        return ImageFacts("sha256:1", ("agent",), {}, {}, "1000:1000", 1, "")

    async def create(self, spec: ContainerSpec) -> str:
        container = await super().create(spec)
        (work,) = [each.source for each in spec.mounts if each.target == WORK]
        self._workspaces[container] = Path(work)
        return container

    async def start_attached(self, container: str) -> asyncio.subprocess.Process:
        work = self._workspaces[container]
        with (work / "memory.txt").open("a") as memory:
            memory.write("ran\n")
        (work / "REPORT.md").write_text("done")
        return _Exited(DONE)  # type: ignore[return-value]

    async def inspect(self, container: str) -> ContainerState | None:
        return ContainerState(container, "exited", 0, False, "", None)


def take_in(place: Path) -> Assistant:
    """An assistant that works on this engine. Its name is the directory's."""
    from assistants.config import Config
    from assistants.models import Assistant, Schedule

    workspace = place / "workspace"
    workspace.mkdir(parents=True)
    if os.geteuid() == 0:  # no agent runs as root
        os.chown(workspace, ORDINARY, ORDINARY)
    (place / "brief.md").write_text("look around")
    config = Config(
        agent="scripted-offline",
        runtime=f"{__name__}:{InThisProcess.__name__}",
        memory_review=False,
        mode="open",  # nothing of the relay's is measured
        provider="openai-compat",
        args=("--base-url=https://127.0.0.1:9", "--image=bench:1", "--memory=32m"),
    )
    made = Assistant.objects.create(name=place.name, directory=str(place), config=config.stored())
    Schedule.objects.create(assistant=made, every_s=3600)
    return made


def live_through(messages: dict[int, str]) -> None:
    """Give each of these assistants, by its row's key, its message and a slot, and wake them.

    Every thread looks at what is due, executes what it was rung for twice, and tries all others.
    Raises what a thread raised.
    """
    from assistants.models import InboxMessage, Schedule
    from runs import clock

    for pk, text in messages.items():
        InboxMessage.objects.create(assistant_id=pk, body=text)
    due = clock.now() - dt.timedelta(seconds=1)
    anchor = due - dt.timedelta(hours=1)
    Schedule.objects.filter(assistant__in=messages).update(next_at=due, anchor_at=anchor)
    start = threading.Barrier(THREADS)
    with ThreadPoolExecutor(THREADS) as pool:
        for each in [pool.submit(_racer, start) for _ in range(THREADS)]:
            each.result()


def _racer(start: threading.Barrier) -> None:
    from django.db import connections

    from assistants import ticking, wakeups
    from assistants.models import Wakeup

    rung: list[int] = []
    try:
        start.wait(_START_S)
        ticking.tick(lambda wakeup: rung.append(wakeup.pk))
        waiting = Wakeup.objects.filter(state=Wakeup.State.WAITING)
        for pk in [*rung, *rung, *waiting.values_list("pk", flat=True)]:
            wakeups.wake(pk)
    finally:
        connections.close_all()
