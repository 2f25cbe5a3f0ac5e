"""Whether a run may be left to the worker: it is up, and would execute it as this process would.

What a person exported in a shell, the worker never saw. So it leaves a mark of all in its own
environment that decides about a run; where that differs, the run stays with whoever asked for it.
"""

from __future__ import annotations

import hashlib
import os
import urllib.request
from pathlib import Path

from django.conf import settings

from runs import keys, locks, pulse
from runs.locality import ENDPOINT
from runs.plan import Plan

LOCK = "worker"
FRESH_S = 5.0  # it stamps every second; one that is told to stop takes nothing new
_DECIDING = (
    "SANDUK_RUNTIME",
    "SANDUK_HIDE",
    "SANDUK_EGRESS_ADMIT",
    "SANDUK_REPORT_MAX_BYTES",
    "SANDUK_MIN_FREE_MB",
)


def announce() -> None:
    """Leave the mark of this process, the worker. On a disk that is full nothing is left to it."""
    path = _path()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(_mark())
    except OSError:
        return


def worker_takes(plan: Plan) -> bool:
    """Whether a worker is up that would execute this plan as this process would."""
    return not _needs_this_shell(plan) and _is_like_here() and _is_up()


def _needs_this_shell(plan: Plan) -> bool:
    """Whether the run is given what only this process has: a variable, a key."""
    if plan.order.env_names:
        return True
    name = plan.provider.key_env if plan.provider else ""
    return bool(name) and keys.source_of(name) in ("environment", "file")


def _is_like_here() -> bool:
    try:
        return _path().read_text() == _mark()
    except (OSError, UnicodeDecodeError):
        return False


def _is_up() -> bool:
    age_s = pulse.age_s("worker")
    if age_s is None or age_s > FRESH_S:
        return False
    with locks.held_if_free(LOCK) as free:
        return not free


def _mark() -> str:
    """A digest that says nothing of what it was made from."""
    told = [str(os.geteuid())]
    told += [f"{name}={getattr(settings, name)!r}" for name in _DECIDING]
    told += [f"{name}={os.environ.get(name, '')}" for name in ENDPOINT]
    told += [f"{scheme}={proxy}" for scheme, proxy in sorted(urllib.request.getproxies().items())]
    return hashlib.sha256("\0".join(told).encode()).hexdigest()


def _path() -> Path:
    home: Path = settings.SANDUK_HOME
    return home / "pulse" / "worker-mark"
