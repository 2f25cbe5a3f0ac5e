"""How a wakeup's end is told at a terminal."""

from __future__ import annotations

from typing import Any

from assistants.models import Wakeup
from runs.visible import visible

REASON = 300
# nothing went wrong, and there was nothing to do
QUIET = frozenset({Wakeup.Outcome.SUCCEEDED, Wakeup.Outcome.GATE, Wakeup.Outcome.NOTHING})


def line(wakeup: Wakeup) -> str:
    """One line. What agents and gates wrote is made visible by whoever prints it."""
    run = f" (run {wakeup.run.uid})" if wakeup.run else ""
    if wakeup.state == Wakeup.State.WAITING:
        return f"{wakeup.assistant.name}: not woken yet; the wakeup waits"
    if wakeup.state != Wakeup.State.ENDED:
        return f"{wakeup.assistant.name}: its process ended, and the wakeup is {wakeup.state}{run}"
    why = f": {visible(wakeup.reason, limit=REASON)}" if wakeup.reason else ""
    return f"{wakeup.assistant.name}: {wakeup.outcome.replace('_', ' ')}{run}{why}"


def as_json(wakeup: Wakeup) -> dict[str, Any]:
    return {
        "id": wakeup.pk,
        "assistant": wakeup.assistant.name,
        "trigger": wakeup.trigger,
        "planned_at": wakeup.planned_at,
        "not_before": wakeup.not_before,
        "state": wakeup.state,
        "outcome": wakeup.outcome,
        "reason": wakeup.reason,
        "started_at": wakeup.started_at,
        "ended_at": wakeup.ended_at,
        "run": wakeup.run.uid if wakeup.run else None,
    }


def exit_code(wakeup: Wakeup) -> int:
    """0 where nothing went wrong, the run's own code where it had one, else 1."""
    if wakeup.outcome in QUIET:
        return 0
    code = wakeup.run.exit_code if wakeup.run else None
    return code or 1
