"""The live trace: one look at the database a second serves every watcher of this process."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import WeakKeyDictionary

from django.db import DatabaseError, close_old_connections, connections
from django.db.models import Q

from runs import figures
from runs.models import Run, RunEvent
from runs.visible import visible

LOOK_S = 1.0
BATCH = 500  # rows of one run that one look takes
WAITING_MAX = 4 * BATCH  # lines a slow reader may be behind; then it comes again by itself
QUIET_S = 15.0  # a stream that says nothing for longer is taken for dead by proxies

Line = dict[str, Any]


def as_line(event: RunEvent) -> Line:
    """One line of the trace as plain data, its hostile text made visible."""
    return {
        "sequence": event.sequence,
        "kind": event.kind,
        "at": event.at.isoformat(timespec="seconds"),
        "clock": f"{event.at:%H:%M:%S}",
        "text": visible(event.text.rstrip(), lines=True),
        "detail": visible(event.detail.rstrip(), lines=True),
    }


class Watch:
    """One reader of one run. `lines` ends with None when it fell behind or the run has ended.

    What has no "sequence" are the run's figures.
    """

    def __init__(self, run_pk: int) -> None:
        self.run_pk = run_pk
        self.is_over = False
        self._told: Line = {}
        self.lines: asyncio.Queue[Line | None] = asyncio.Queue()

    def give(self, lines: list[Line], told: Line, *, ended: bool) -> bool:
        """False when nothing more is to come. Figures are passed on when they are others."""
        if told != self._told:
            self._told = told
            self.lines.put_nowait(told)
        if self.lines.qsize() + len(lines) > WAITING_MAX:
            self.lines.put_nowait(None)
            return False
        for line in lines:
            self.lines.put_nowait(line)
        if ended:
            self.is_over = True
            self.lines.put_nowait(None)
        return not ended


class Hub:
    """All watches of one event loop, and the task that looks for them while there are any."""

    def __init__(self) -> None:
        self.looks = 0
        self._watches: dict[int, set[Watch]] = defaultdict(set)
        self._seen: dict[int, int] = {}
        self._task: asyncio.Task[None] | None = None
        # a thread with a connection of its own: a request's would end with the request
        self._thread: ThreadPoolExecutor | None = None

    def join(self, watch: Watch, after: int) -> None:
        """Give this watch what comes after line `after`, and perhaps a few lines before."""
        if watch.run_pk not in self._seen or after < self._seen[watch.run_pk]:
            self._seen[watch.run_pk] = after
        self._watches[watch.run_pk].add(watch)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._look_on())

    def leave(self, watch: Watch) -> None:
        watches = self._watches.get(watch.run_pk)
        if watches is None:
            return
        watches.discard(watch)
        if not watches:
            del self._watches[watch.run_pk]
            self._seen.pop(watch.run_pk, None)

    async def read(self, run_pk: int, after: int) -> list[Line]:
        """At most BATCH lines behind `after`."""
        rows = await self._in_thread(_rows_behind, {run_pk: after})
        return [as_line(row) for row in rows]

    async def _look_on(self) -> None:
        while self._watches:
            with contextlib.suppress(DatabaseError):  # locked: the next second is another try
                await self._look()
            await asyncio.sleep(LOOK_S)
        self._task, thread, self._thread = None, self._thread, None
        if thread is not None:
            thread.submit(connections.close_all)
            thread.shutdown(wait=False)

    async def _look(self) -> None:
        wanted = {pk: self._seen[pk] for pk in self._watches}
        self.looks += 1
        rows, told, ended = await self._in_thread(_looked, wanted)
        is_whole = len(rows) < BATCH * len(wanted)
        found: dict[int, list[Line]] = defaultdict(list)
        for row in rows:
            found[row.run_id].append(as_line(row))
        for pk in wanted.keys() & self._watches.keys():
            lines = found.get(pk, [])
            if lines:
                self._seen[pk] = max(self._seen[pk], lines[-1]["sequence"])
            for watch in list(self._watches[pk]):
                if not watch.give(lines, told.get(pk, {}), ended=is_whole and pk in ended):
                    self.leave(watch)

    async def _in_thread(self, work: Any, *args: Any) -> Any:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="live")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)


def _rows_behind(wanted: dict[int, int]) -> list[RunEvent]:
    """Lines behind the given one of each run, in order, as many as one look takes."""
    close_old_connections()
    condition = Q(pk=None)
    for pk, after in wanted.items():
        condition |= Q(run=pk, sequence__gt=after)
    found = RunEvent.objects.filter(condition).order_by("run", "sequence")
    return list(found[: BATCH * len(wanted)])


def _looked(wanted: dict[int, int]) -> tuple[list[RunEvent], dict[int, Line], set[int]]:
    """New lines of the wanted runs, their figures, and which had ended before that was read."""
    close_old_connections()
    runs = list(Run.objects.filter(pk__in=list(wanted)).defer("report", "task", "order"))
    ended = {run.pk for run in runs if run.state == Run.State.ENDED}
    told = {run.pk: figures.told(run) for run in figures.so_far(runs)}
    return _rows_behind(wanted), told, ended


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """The one of this event loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())


async def stream(run_pk: int, after: int) -> AsyncIterator[str]:
    """Server-sent events: every line behind `after`, then what comes, until the run ends.

    The id of an event is the number of its line, so that a browser which lost the connection
    goes on where it was. Figures have none: they are no line.
    """
    ours = hub()
    while lines := await ours.read(run_pk, after):
        for line in lines:
            yield _event("line", line, line["sequence"])
        after = lines[-1]["sequence"]
    watch = Watch(run_pk)
    ours.join(watch, after)
    try:
        while True:
            try:
                async with asyncio.timeout(QUIET_S):
                    came = await watch.lines.get()
            except TimeoutError:
                yield ": still here\n\n"
                continue
            if came is None:
                break
            if "sequence" not in came:
                yield _event("figures", came)
            elif came["sequence"] > after:
                after = came["sequence"]
                yield _event("line", came, after)
    finally:
        ours.leave(watch)
    if watch.is_over:
        yield _event("ended", {}, after)


def _event(name: str, data: Line, number: int | None = None) -> str:
    begin = "" if number is None else f"id: {number}\n"
    return f"{begin}event: {name}\ndata: {json.dumps(data)}\n\n"
