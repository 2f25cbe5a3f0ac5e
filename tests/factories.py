"""Rows for tests, complete enough to be stored; a test names only what it is about."""

from __future__ import annotations

import datetime as dt
import secrets
from typing import Any

from runs import clock
from runs.models import Run


def run_fields(**fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "agent": "scripted",
        "mode": "sealed",
        "engine": "docker",
        "workspace": f"/srv/{secrets.token_hex(6)}",
        "task": "look around",
        **fields,
    }
    state = found.get("state")
    if state in Run.State.values and state not in ("queued", "ended"):
        found.setdefault("lease_owner", "nobody")
        found.setdefault("lease_until", clock.now() + dt.timedelta(seconds=30))
    if state == "ended":
        found.setdefault("outcome", "succeeded")
        found.setdefault("exit_code", 0)
        found.setdefault("ended_at", clock.now())
    return found


def make_run(**fields: Any) -> Run:
    return Run.objects.create(**run_fields(**fields))
