"""Who executes a run: an owner's name that can be proved gone, and a lease it keeps renewing.

A lease is lost in two cases only: the owner is provably gone, or the watcher has itself seen it
unrenewed for a full period on its own monotonic clock. The wall clock decides nothing.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Literal, Protocol

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connections

from runs import clock
from runs.models import Run

BEAT_S = 2.0


@cache
def _machine() -> str:
    for name in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            return Path(name).read_text().strip()[:32]
        except OSError:
            continue
    return f"node-{uuid.getnode():012x}"


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return "0"


def _started(pid: int) -> str | None:
    """When a process started, in clock ticks since boot; None when it is not there."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]  # a zombie executes nothing


def owner() -> str:
    """This process: machine, boot, pid namespace, pid, start time. A recycled pid differs."""
    pid = os.getpid()
    return "/".join((_machine(), _boot(), _pid_namespace(), str(pid), _started(pid) or "0"))


def owner_is(name: str) -> Literal["alive", "gone", "unknown"]:
    """Whether the process that wrote this owner name still lives, as far as it can be proved."""
    parts = name.split("/")
    if len(parts) != 5:
        return "unknown"
    machine, boot, namespace, pid, started = parts
    if machine != _machine():
        return "unknown"
    if boot != _boot():
        return "unknown" if "unknown" in (boot, _boot()) else "gone"
    a_number = pid.isascii() and pid.isdigit()
    if namespace != _pid_namespace() or not a_number or not Path("/proc").is_dir():
        return "unknown"
    return "alive" if _started(int(pid)) == started else "gone"


class Leased(Protocol):
    """A row that some process holds: a run, a wakeup."""

    pk: int
    lease_owner: str
    lease_beats: int


class Watcher:
    """Sees leases go unrenewed. One per process that looks again and again, such as the worker."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], tuple[int, float]] = {}

    def is_lost(self, row: Leased) -> bool:
        """Whether the row's lease is lost, as of this look."""
        state = owner_is(row.lease_owner)
        if state == "gone":
            return True
        key = (type(row).__name__, row.pk)
        if state == "alive":
            self._seen.pop(key, None)
            return False
        beats, since = self._seen.get(key, (-1, 0.0))
        if beats != row.lease_beats:
            self._seen[key] = (row.lease_beats, clock.monotonic())
            return False
        return clock.monotonic() - since >= settings.SANDUK_LEASE_SECONDS


class Heartbeat:
    """Renews one run's lease and brings back whether somebody asked it to stop.

    It owns one thread, and so one database connection, apart from the writer's: a large batch of
    events never delays a renewal.
    """

    def __init__(
        self,
        uid: str,
        name: str,
        *,
        on_stop: Callable[[str], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._uid, self._name = uid, name
        self._on_stop, self._on_lost = on_stop, on_lost
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lease")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._beat())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._task is not None and self._used:
            await asyncio.get_running_loop().run_in_executor(self._thread, connections.close_all)
        self._thread.shutdown(wait=False)

    _used = False

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        failing_since: float | None = None
        while True:
            await clock.sleep(BEAT_S)
            self._used = True
            try:
                held, stopper = await loop.run_in_executor(self._thread, self._renew)
                failing_since = None
            except DatabaseError:
                # a full disk or a locked database: keep working until the lease has run out
                failing_since = failing_since or clock.monotonic()
                held = clock.monotonic() - failing_since < settings.SANDUK_LEASE_SECONDS
                stopper = ""
            if not held:
                self._on_lost()
                return
            if stopper:
                self._on_stop(stopper)

    def _renew(self) -> tuple[bool, str]:
        close_old_connections()  # a server that was started again wants a new one
        held = Run.objects.renew(self._uid, self._name, settings.SANDUK_LEASE_SECONDS)
        asked = (
            Run.objects.filter(uid=self._uid)
            .exclude(stop_requested_at=None)
            .values_list("stop_requested_by", flat=True)
            .first()
        )
        return held, (asked or "somebody") if asked is not None else ""
