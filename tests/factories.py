"""Rows for tests, complete enough to be stored; a test names only what it is about."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Callable
from typing import Any

from django.db import IntegrityError, transaction

from assistants.config import Config
from assistants.models import Assistant, Schedule, Wakeup
from runs import clock
from runs.models import Run


def refused(make: Callable[[], Any]) -> bool:
    """Whether the database itself refuses what `make` writes."""
    try:
        with transaction.atomic():
            make()
    except IntegrityError:
        return True
    return False


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


def make_assistant(name: str = "", *, config: Config | None = None, **fields: Any) -> Assistant:
    """An assistant with the given settings; its directory is made up unless it is given."""
    name = name or f"a-{secrets.token_hex(4)}"
    fields.setdefault("directory", f"/srv/{name}")
    stored = (config or Config()).stored()
    return Assistant.objects.create(name=name, config=stored, **fields)


def make_schedule(assistant: Assistant | None = None, **fields: Any) -> Schedule:
    if "cron" not in fields:
        fields.setdefault("every_s", 1800)
    return Schedule.objects.create(assistant=assistant or make_assistant(), **fields)


def make_wakeup(assistant: Assistant | None = None, **fields: Any) -> Wakeup:
    planned = fields.pop("planned_at", clock.now())
    fields.setdefault("trigger", "hand")
    fields.setdefault("not_before", planned)
    state = fields.get("state")
    if state == "running":
        fields.setdefault("lease_owner", "nobody")
        fields.setdefault("lease_until", clock.now() + dt.timedelta(seconds=30))
    if state == "ended":
        fields.setdefault("outcome", "succeeded")
        fields.setdefault("ended_at", clock.now())
    return Wakeup.objects.create(
        assistant=assistant or make_assistant(), planned_at=planned, **fields
    )
