"""What the workers of the `runs` cluster are asked to do with a run."""

from __future__ import annotations

import msgspec
from django.conf import settings

from runs import lease, lifecycle, queue
from runs.console import Silent
from runs.models import Run
from runs.models.run import EXIT_CODES, Outcome
from runs.order import restored
from runs.plan import make_plan
from runs.refusal import Refusal

EXECUTE = "runs.tasks.execute"


def enqueue(run: Run) -> None:
    """Have a worker execute a queued run. Call it in the transaction that makes the row."""
    limit_s = int(run.order.get("timeout_s") or 900)
    queue.ring(EXECUTE, run.pk, cluster=queue.RUNS, limit_s=limit_s)


def execute(number: int) -> str:
    """Claim a queued run and execute it: its outcome, or "not ours"."""
    said = "stopped"
    with queue.told_to_stop():
        said = _executed(number)
    return said


def _executed(number: int) -> str:
    run = Run.objects.filter(pk=number, state=Run.State.QUEUED).first()
    if run is None:
        return "not ours"
    try:
        plan = make_plan(restored(run.order, run.task))
        if not lifecycle.claim(run.uid):
            return "not ours"
    except (Refusal, msgspec.ValidationError) as exc:
        _refuse(run, str(exc))
        return "refused"
    run.refresh_from_db()
    return lifecycle.execute(run, plan, Silent()).outcome


def _refuse(run: Run, why: str) -> None:
    """End a queued run that cannot be started."""
    if Run.objects.claim(run.uid, lease.owner(), settings.SANDUK_LEASE_SECONDS):
        Run.objects.mark_ended(
            run.uid,
            lease.owner(),
            outcome=Outcome.REFUSED,
            exit_code=EXIT_CODES[Outcome.REFUSED],
            reason=why[:2000],
        )
