"""Asking once per boot and endpoint whether relayed runs can work on an engine."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from django.conf import settings

from runs.box import runtime_directory
from runs.engines.base import Engine

# what decides which daemon a client talks to
_ENDPOINT = ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINER_HOST", "CONTAINERS_CONF")


async def require_local(engine: Engine) -> None:
    """Raise EngineUnavailable unless a socket of this host can be mounted there.

    A positive answer is remembered; a negative one is asked again every time.
    """
    mark = _mark(engine)
    if mark.exists():
        return
    facts = await engine.ready()
    await engine.require_local(facts, directory=runtime_directory())
    mark.parent.mkdir(mode=0o700, exist_ok=True)
    mark.touch(mode=0o600)


def _mark(engine: Engine) -> Path:
    told = [engine.name, str(os.geteuid())]
    told += [f"{name}={os.environ.get(name, '')}" for name in _ENDPOINT]
    for file in ("/proc/sys/kernel/random/boot_id", Path.home() / ".docker" / "config.json"):
        try:
            told.append(Path(file).read_text())
        except OSError:
            told.append("")
    digest = hashlib.sha256("\0".join(told).encode()).hexdigest()[:24]
    home: Path = settings.SANDUK_HOME
    return home / "engines" / f"{engine.name.replace(':', '-')}-{digest}"
