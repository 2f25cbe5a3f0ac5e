"""How long request bodies are kept: an age and a size over the logs of all runs together.

What a call sent and what became of it go; its row, with its figures, stays. The log of a live run
counts, and is left alone: it has a size limit of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from relay.bodies import Kept, kept_calls, remove_calls
from runs import clock, locks
from runs.models import Run

EVERY_S = 3600.0
DAY_S = 86400.0
MB = 10**6


@dataclass(slots=True)
class Retained:
    """What one pass did: calls removed, their bytes, and troubles in sentences."""

    calls: int = 0
    size: int = 0
    troubles: list[str] = field(default_factory=list)


def bodies_of(run: Run) -> Path:
    """Where a run's request bodies are kept, if they are. Makes nothing."""
    chosen = run.order.get("log_dir")
    if isinstance(chosen, str) and chosen:
        return Path(chosen) / run.uid
    home: Path = settings.SANDUK_HOME
    return home / "runs" / run.uid / "bodies"


def apply_if_due() -> Retained:
    """Apply it once an hour, whoever comes first; cheap otherwise: one mark is looked at."""
    mark: Path = settings.SANDUK_HOME / "retention"
    try:
        since = time.time() - mark.stat().st_mtime
    except FileNotFoundError:
        since = EVERY_S
    # a mark of the future was set by a clock that was wrong
    if not settings.SANDUK_HOME.is_dir() or 0 <= since < EVERY_S:
        return Retained()
    return apply()


def apply() -> Retained:
    """Remove what is too old, then the oldest until the rest fits."""
    done = Retained()
    with locks.held_if_free("retention") as free:
        if not free:
            return done
        (settings.SANDUK_HOME / "retention").touch()
        logs = {}
        for run in Run.objects.filter(order__log_bodies=True).only("uid", "order", "state"):
            try:
                logs[run] = kept_calls(bodies_of(run))
            except OSError as exc:
                done.troubles.append(_trouble(run, exc))
        for run, going in _surplus(logs).items():
            try:
                remove_calls(
                    bodies_of(run), [call.sequence for call in going], f"{clock.now():%Y-%m-%d}"
                )
            except OSError as exc:
                done.troubles.append(_trouble(run, exc))
            else:
                done.calls += len(going)
                done.size += sum(call.size for call in going)
    return done


def _surplus(logs: dict[Run, list[Kept]]) -> dict[Run, list[Kept]]:
    """What has to go, run by run."""
    oldest = clock.now().timestamp() - settings.SANDUK_BODIES_MAX_DAYS * DAY_S
    room = settings.SANDUK_BODIES_MAX_MB * MB
    total = sum(call.size for calls in logs.values() for call in calls)
    going: dict[Run, list[Kept]] = {}
    for call, run in _oldest_first(logs):
        if call.written_at >= oldest and total <= room:
            break
        going.setdefault(run, []).append(call)
        total -= call.size
    return going


def _oldest_first(logs: dict[Run, list[Kept]]) -> Iterable[tuple[Kept, Run]]:
    ended = ((run, calls) for run, calls in logs.items() if run.state == Run.State.ENDED)
    found = [(call, run) for run, calls in ended for call in calls]
    return sorted(found, key=lambda each: (each[0].written_at, each[1].pk, each[0].sequence))


def _trouble(run: Run, exc: OSError) -> str:
    return f"bodies of run {run.uid} in {bodies_of(run)}: {exc.strerror}"
