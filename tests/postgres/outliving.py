"""A run and a wakeup whose database connections all end in the middle, as by a server's restart."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from django.db import close_old_connections, connection

from assistants import foreground, wakeups, working
from assistants.models import Wakeup
from runs import admission, home, lease, recorder
from runs.models import Run, RunEvent
from runs.recorder import Recorder
from tests.assistants.waking import assistant_in
from tests.factories import make_run, make_wakeup

EVENTS = 40
number = 0


def begin() -> None:
    home.prepare()


def end_connections() -> int:
    """All of this database's but this process's own; how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return len(cursor.fetchall())


def _lose_this_one() -> None:
    """Have the server end this process's own connection."""
    connection.ensure_connection()
    connection.connection.execute("SET idle_session_timeout = 1")
    time.sleep(0.5)


def both() -> dict[str, Any]:
    """One process executes a run, the other ends its connections once that one writes."""
    if number == 0:
        return execute()
    deadline = time.monotonic() + 30
    while not RunEvent.objects.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return {"ended": end_connections()}


def execute() -> dict[str, Any]:
    """Hold a run, write events all the time, and change its row at the end."""
    lease.BEAT_S, recorder.FLUSH_S = 0.05, 0.02
    run = make_run(state="running", lease_owner=lease.owner())
    lost: list[str] = asyncio.run(_written(run))
    close_old_connections()
    run.refresh_from_db()
    texts = list(run.events.values_list("text", flat=True))
    return {"lost": lost, "texts": texts, "beats": run.lease_beats, "outcome": run.outcome}


async def _written(run: Run) -> list[str]:
    writer = Recorder(run.pk)
    writer.start()
    lost: list[str] = []
    beat = lease.Heartbeat(
        run.uid, run.lease_owner, on_stop=lost.append, on_lost=lambda: lost.append("lease")
    )
    beat.start()
    for line in range(EVENTS):
        writer.event("text", f"line {line}")
        await asyncio.sleep(0.05)
    await writer.rows(
        lambda: Run.objects.mark_ending(run.uid, run.lease_owner, outcome="succeeded")
    )
    await beat.stop()
    await writer.stop()
    lost += [writer.failure] if writer.failure else []
    return lost


def wake(place: str) -> list[Any]:
    """Live a wakeup in the middle of whose run the connections end, those of this process too."""
    admission.available_bytes = lambda: 2**40
    lease.BEAT_S = 0.05
    assistant = assistant_in(Path(place))

    def executed(run: Run, plan: Any, console: Any) -> Run:
        facts = {"outcome": "succeeded", "exit_code": 0, "report": "done", "report_state": "saved"}
        Run.objects.mark_ended(run.uid, lease.owner(), **facts)
        run.refresh_from_db()
        end_connections()
        _lose_this_one()
        return run

    wakeups.execute = executed
    wakeups.wake(make_wakeup(assistant).pk)
    close_old_connections()
    found = Wakeup.objects.get(assistant=assistant)
    return [found.state, found.outcome, found.reason, found.outbox_item.body]


def look_again() -> list[Any]:
    """What looks again and again, after the server has ended its connection."""
    found: list[Any] = []
    for look in (working.nudge, foreground.Foreground(print, print)._look):
        look()
        _lose_this_one()
        first = look()
        found.append(first if first is None else look())
    return found
