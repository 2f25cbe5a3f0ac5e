"""What the workers of the `runs` cluster are asked to do with a run."""

from __future__ import annotations

import msgspec

from runs import lifecycle, queue
from runs.bells import enqueue
from runs.console import Silent
from runs.models import Run
from runs.order import restored
from runs.plan import make_plan
from runs.refusal import Refusal
from runs.signals import run_ended

__all__ = ["enqueue", "execute"]


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
    except Exception as exc:
        # left as it is, it would be rung for again and again
        _refuse(run, f"sanduk itself failed: {type(exc).__name__}")
        raise
    run.refresh_from_db()
    return lifecycle.execute(run, plan, Silent()).outcome


def _refuse(run: Run, why: str) -> None:
    """End a queued run that cannot be started."""
    if Run.objects.refuse(run.pk, why[:2000]):
        run.refresh_from_db()
        run_ended.send(sender=Run, run=run)
