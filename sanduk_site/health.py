"""Whether the site answers, and whether everything it needs does: for monitors, no secrets."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from dataclasses import dataclass, field

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from runs import clock, pulse
from runs.engines import get_engine
from runs.engines.base import EngineError
from sanduk_site import whereabouts

WORKER_MAX_S = 90.0  # a cluster that is started again takes its supervisor 40 s
ENGINE_LOOK_S = 30.0  # whoever asks more often hears the same
ENGINE_PATIENCE_S = 5.0
OK = "ok"


@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """This process answers. Nothing else is looked at."""
    return JsonResponse({"ok": True})


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Each thing the site needs, in a fixed word: no path, no name, no error of anybody's."""
    found = {
        "database": _database(),
        "migrations": migrations(),
        "worker": _worker(),
        "engine": _engine.word(),
    }
    if whereabouts.is_stopping(os.getppid()):  # it answers, and takes nothing new
        found["worker"] = "stopping"
    ready = all(word == OK for word in found.values())
    return JsonResponse({"ready": ready, **found}, status=200 if ready else 503)


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "unreachable"
    return OK


_migrated = threading.Event()  # a process knows one set of migrations, and none is taken back


def migrations() -> str:
    if _migrated.is_set():
        return OK
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return "pending"
    except DatabaseError:
        return "unknown"
    _migrated.set()
    return OK


def _worker() -> str:
    age_s = pulse.age_s("worker")
    if age_s is None:
        return "never seen"
    return OK if age_s <= WORKER_MAX_S else "stopped"


@dataclass(slots=True)
class _Engine:
    """What the engine last said. One asks, the others hear what it said before."""

    _asking: threading.Lock = field(default_factory=threading.Lock)
    _looked_at: float | None = None
    _word: str = "unknown"

    def word(self) -> str:
        is_old = self._looked_at is None or clock.monotonic() - self._looked_at > ENGINE_LOOK_S
        if is_old and self._asking.acquire(blocking=self._looked_at is None):
            try:
                self._word = asyncio.run(_asked())
                self._looked_at = clock.monotonic()
            finally:
                self._asking.release()
        return self._word

    def forget(self) -> None:
        self._looked_at = None


async def _asked() -> str:
    with contextlib.suppress(EngineError, TimeoutError):
        await asyncio.wait_for(
            get_engine(settings.SANDUK_RUNTIME or None).ready(), ENGINE_PATIENCE_S
        )
        return OK
    return "unreachable"


_engine = _Engine()
