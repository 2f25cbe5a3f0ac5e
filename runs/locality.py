"""Asking once per boot and endpoint whether runs can work on an engine.

One process of an installation probes at a time. So whatever carries a probe's label while nobody
holds the lock was left by one that was killed, and a later command may remove it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Awaitable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings

from runs import box, locks
from runs.engines.base import LABEL_INSTALL, BuildFailed, Engine, EngineError
from runs.installation import install_id

T = TypeVar("T")
PROBE_LOCK = "probe"
PROBE_S = 5.0  # how long a probe under way is waited for when everything ends
# what decides which daemon a client talks to
ENDPOINT = ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINER_HOST", "CONTAINERS_CONF")


async def require_usable(engine: Engine, *, relayed: bool) -> None:
    """Raise EngineUnavailable unless runs of this kind can work on the engine.

    A positive answer is remembered; a negative one is asked again every time.

    Args:
        relayed: a socket of this host must be mountable there.
    """
    mark = _mark(engine, "relayed" if relayed else "plain")
    if mark.exists():
        return
    if relayed and shutil.which(engine.cli):
        # before `ready`, which can wait long for a daemon that is remote
        async with locks.held(PROBE_LOCK):
            if mark.exists():
                return
            await _to_the_end(_probe(engine))
    await engine.ready()
    mark.parent.mkdir(mode=0o700, exist_ok=True)
    mark.touch(mode=0o600)


async def explained(engine: Engine, work: Awaitable[T]) -> T:
    """Await `work`; if it fails because the engine does not work, raise what helps against that."""
    try:
        return await work
    except BuildFailed:
        raise
    except EngineError:
        await engine.ready()
        raise


def probe_directory() -> Path:
    """Where this installation's probes have their files, beside the boxes of runs."""
    return box.runtime_directory() / f"probe-{install_id()}"


async def _probe(engine: Engine) -> None:
    directory = probe_directory()
    directory.mkdir(mode=0o700, exist_ok=True)
    try:
        await engine.require_local(directory=directory, labels={LABEL_INSTALL: install_id()})
    finally:
        await asyncio.to_thread(shutil.rmtree, directory, True)


async def _to_the_end(probing: Coroutine[Any, Any, None]) -> None:
    """Await a probe; cancelled, still let it finish: broken off, it would leave its container."""
    task = asyncio.ensure_future(probing)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=PROBE_S)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise


def _mark(engine: Engine, kind: str) -> Path:
    told = [engine.name, kind, str(os.geteuid())]
    told += [f"{name}={os.environ.get(name, '')}" for name in ENDPOINT]
    for file in ("/proc/sys/kernel/random/boot_id", Path.home() / ".docker" / "config.json"):
        try:
            told.append(Path(file).read_text())
        except OSError:
            told.append("")
    digest = hashlib.sha256("\0".join(told).encode()).hexdigest()[:24]
    home: Path = settings.SANDUK_HOME
    return home / "engines" / f"{engine.name.replace(':', '-')}-{digest}"
