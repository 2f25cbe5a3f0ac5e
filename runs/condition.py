"""How this installation and the engines on this machine are, for `sanduk system status`."""

from __future__ import annotations

import asyncio
import platform
import shutil
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection

from runs import backup_age, engines, stock
from runs.engines import get_engine
from runs.engines.base import LABEL_INSTALL, Engine, EngineError
from runs.installation import install_id
from runs.models import Run

LISTENS_S = 1.0


@dataclass(frozen=True, slots=True)
class EngineCondition:
    """One engine. `trouble` is why it cannot be used, with what helps; "" when it can."""

    name: str
    is_default: bool
    version: str = ""
    operating_system: str = ""
    rootless: bool = False
    oci_runtimes: tuple[str, ...] = ()
    missing_limits: tuple[str, ...] = ()
    containers: int | None = None
    images: int | None = None
    images_bytes: int | None = None
    trouble: str = ""


def of_engines(chosen: str) -> list[EngineCondition]:
    """The engine that runs would use first, then the others that are installed.

    Args:
        chosen: an engine's name or `module:Class`; "" for the first that is installed.
    """
    first = chosen or get_engine(None).name
    found = [_condition(first, is_default=True)]
    for name in engines.engine_names():
        try:
            is_installed = shutil.which(get_engine(name).cli) is not None
        except EngineError:
            continue  # one of somebody's own that is broken: sanduk list runtimes names it
        if name != first and is_installed:
            found.append(_condition(name, is_default=False))
    return found


def _condition(name: str, *, is_default: bool) -> EngineCondition:
    try:
        return asyncio.run(_asked(get_engine(name), name, is_default=is_default))
    except EngineError as exc:
        return EngineCondition(name, is_default, trouble=str(exc))


async def _asked(engine: Engine, name: str, *, is_default: bool) -> EngineCondition:
    facts = await engine.ready()
    containers = await engine.containers({LABEL_INSTALL: install_id()})
    try:
        rows = await stock.listed(engine)
    except EngineError:  # one that cannot list images works all the same
        rows = None
    return EngineCondition(
        name,
        is_default,
        version=facts.version,
        operating_system=facts.operating_system,
        rootless=facts.rootless,
        oci_runtimes=facts.oci_runtimes,
        missing_limits=facts.missing_limits,
        containers=len(containers),
        images=None if rows is None else len(rows),
        images_bytes=None if rows is None else sum(row.size_bytes for row in rows),
    )


def of_installation() -> dict[str, Any]:
    """State directory, records and site, as data that `--json` shows."""
    home: Path = settings.SANDUK_HOME
    return {
        "home": str(home),
        "free_mb": shutil.disk_usage(home).free // 2**20,
        "needed_mb": settings.SANDUK_MIN_FREE_MB,
        "database": connection.vendor,
        "backup": {"made_at": backup_age.made_at(), "trouble": backup_age.trouble()},
        "python": platform.python_version(),
        "runs": {
            "recorded": Run.objects.count(),
            "live": Run.objects.live().count(),
            "queued": Run.objects.filter(state=Run.State.QUEUED).count(),
        },
        "site": {"url": settings.SANDUK_BASE_URL, "listens": _listens(settings.SANDUK_BASE_URL)},
    }


def as_data(engine: EngineCondition) -> dict[str, Any]:
    return {**asdict(engine), "answers": not engine.trouble}


def _listens(url: str) -> bool:
    """Whether anything accepts a connection where the site is said to be. Nothing is sent."""
    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), LISTENS_S):
            return True
    except (OSError, ValueError):
        return False
