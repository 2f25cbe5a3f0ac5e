"""Taking an installation away: what it made on its engines, and, when told so, its own state."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Iterable
from pathlib import Path

from django.conf import settings
from django.db import connections

from runs.engines import get_engine
from runs.engines.base import LABEL_INSTALL, LABEL_ROLE, Engine, EngineError
from runs.installation import install_id
from runs.locality import explained
from runs.models import Run
from runs.reconcile import Reconciled, sweep

# what sanduk itself writes there; whatever else lies in SANDUK_HOME is somebody's own
STATE = (
    "sanduk.sqlite3", "sanduk.sqlite3-wal", "sanduk.sqlite3-shm", "secret_key", "credentials",
    "credentials.lock", "install-id", "runs", "memory", "repos", "engines", "locks", "schema",
    "schema.lock", "retention", "cache", "pulse", "audit-head", "audit-head.lock",
    "changes", "clones", "tests",
    "up.json", "up.draft",  # stay when the site's supervisor was killed
)  # fmt: skip


def engines_used(chosen: str) -> list[str]:
    """The engines that may hold something: those of all runs, and the one to be used now.

    Args:
        chosen: an engine's name; "" for the first that is installed.
    """
    names = list(Run.objects.order_by().values_list("engine", flat=True).distinct())
    with contextlib.suppress(
        EngineError
    ):  # none is installed: the runs' own are asked all the same
        names.append(chosen or get_engine(None).name)
    return list(dict.fromkeys(names))


def clear_engines(names: Iterable[str]) -> Reconciled:
    """Remove every container, network and image of this installation that no live run needs."""
    done = Reconciled()
    for name in names:
        try:
            engine = get_engine(name)
            swept = sweep(engine, kept_too=True)
            done.removed.add(swept.removed)
            done.troubles += swept.troubles
            if not swept.troubles:
                done.removed.images += asyncio.run(explained(engine, _remove_images(engine)))
        except EngineError as exc:
            done.troubles.append(f"{name}: {exc}")
    return done


async def _remove_images(engine: Engine) -> int:
    return await engine.remove_images({LABEL_INSTALL: install_id(), LABEL_ROLE: "image"})


def remove_state() -> list[Path]:
    """Remove what sanduk wrote into SANDUK_HOME; returns what else lies there, and stays.

    A database elsewhere (DATABASE_URL) is not touched. Raises OSError.
    """
    connections.close_all()
    home: Path = settings.SANDUK_HOME
    for path in [*(home / name for name in STATE), *home.glob("credentials.damaged-*")]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    left = sorted(home.iterdir())
    if not left:
        home.rmdir()
    return left
