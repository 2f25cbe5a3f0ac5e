"""Telling a worker of queued runs, and telling it again when nobody came.

A row of the queue may be lost (a restored database, a worker killed with it in memory); ours stays.
"""

from __future__ import annotations

from runs import clock, queue
from runs.models import Run

EXECUTE = "runs.tasks.execute"


def enqueue(run: Run) -> None:
    """Have a worker execute a queued run. Call it in the transaction that makes the row."""
    Run.objects.filter(pk=run.pk).update(rung_at=clock.now())
    _ring(run)


def ring_again() -> list[str]:
    """Ring for runs whose bell nobody heard; their uids. One that still hangs there is enough."""
    unheard = list(Run.objects.unheard().order_by("created_at", "pk"))
    if not unheard:
        return []
    hanging = queue.hanging(queue.RUNS, EXECUTE)
    rung = []
    for run in unheard:
        if Run.objects.ring(run.pk) and run.pk not in hanging:
            _ring(run)
            rung.append(run.uid)
    return rung


def _ring(run: Run) -> None:
    limit_s = int(run.order.get("timeout_s") or 900)
    queue.ring(EXECUTE, run.pk, cluster=queue.RUNS, limit_s=limit_s)
