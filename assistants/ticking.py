"""One look at everything that may be due: slots become rows, rows become running wakeups.

Any number of these may happen at once, in a worker, in `serve` and by cron: each step is one
conditional UPDATE or one unique row, so a slot is started once.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cronsim import CronSimError
from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from assistants import asked, belonging, schedules, wakeups
from assistants.config import restored
from assistants.models import Assistant, Schedule, Wakeup
from runs import audit, clock, pulse
from runs.console import Console, Silent
from runs.lease import Watcher, owner_is
from runs.models import Run
from runs.models.run import LIVE_VALUES, RING_AGAIN_S, rung_since
from runs.reconcile import reconcile
from runs.refusal import Refusal

log = logging.getLogger(__name__)
W = Wakeup.Outcome
Ring = Callable[[Wakeup], None]


@dataclass(slots=True)
class Ticked:
    """What one look did: numbers of wakeups, and sentences."""

    planned: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    rung: list[int] = field(default_factory=list)
    recovered: list[int] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


def tick(ring: Ring, *, watcher: Watcher | None = None, console: Console | None = None) -> Ticked:
    """End what was lost, write down what is due, and have as much of it started as there is room.

    Args:
        ring: tells a process to look at a wakeup; called once per wakeup, in the order they wait.
        watcher: of a process that looks again and again.
    """
    done = end_lost(watcher, console)
    now = clock.now()
    plan(done, now)
    settle_waiting(done, now)
    ring_waiting(done, ring)
    pulse.stamp("tick")
    return done


# -- what a dead process left ---------------------------------------------------------------------
def end_lost(watcher: Watcher | None = None, console: Console | None = None) -> Ticked:
    """End runs and wakeups whose processes are gone; what was interrupted is tried again."""
    done = Ticked(troubles=reconcile(watcher).troubles)
    _recover(done, watcher, console or Silent())
    return done


def _recover(done: Ticked, watcher: Watcher | None, console: Console) -> None:
    for wakeup in Wakeup.objects.filter(state=Wakeup.State.RUNNING).select_related("run"):
        lost = watcher.is_lost(wakeup) if watcher else owner_is(wakeup.lease_owner) == "gone"
        try:
            if lost and wakeups.recover(wakeup, console) is not None:
                done.recovered.append(wakeup.pk)
        except Exception as exc:
            # one that cannot be ended must not keep the others from being looked at
            log.exception("wakeup %s is lost and could not be ended", wakeup.pk)
            done.troubles.append(f"wakeup {wakeup.pk} is lost and could not be ended: {exc}")


# -- slots become rows ----------------------------------------------------------------------------
def plan(done: Ticked, now: dt.datetime) -> None:
    """Write down every slot that has come, and each schedule's next one."""
    for schedule in _to_plan(now):
        try:
            _plan_one(done, schedule, now)
        except (Refusal, CronSimError, ValueError, OverflowError) as exc:
            # a zone this host no longer knows, an expression of another version
            _broken(done, schedule, str(exc))


def _to_plan(now: dt.datetime) -> list[Schedule]:
    """Schedules whose slot has come, and those that were never given one.

    After the clock was set back, all: a next slot may lie further away than it should.
    """
    awake = Schedule.objects.filter(assistant__disabled_at=None, assistant__removed_at=None)
    if not pulse.is_behind("tick"):
        awake = awake.filter(Q(next_at__lte=now) | Q(next_at=None))
    return list(awake.order_by("next_at", "pk"))


def _plan_one(done: Ticked, schedule: Schedule, now: dt.datetime) -> None:
    """One schedule, in one transaction. Nothing is written when somebody else was faster."""
    seen = schedule.next_at
    decision = schedules.settle(schedules.timing_of(schedule), seen, now, seed(schedule))
    with transaction.atomic():
        if not Schedule.objects.advance(schedule.pk, seen=seen, to=decision.next_at):
            return
        for each in decision.skipped:
            _skipped_row(done, schedule, each)
        if decision.run is not None:
            _waiting_row(done, schedule, decision.run)


def seed(schedule: Schedule) -> str:
    """What jitter and stagger of a schedule follow from."""
    return str(schedule.pk)


def _waiting_row(done: Ticked, schedule: Schedule, slot: schedules.Slot) -> None:
    row, made = Wakeup.objects.get_or_create(
        schedule=schedule,
        planned_at=slot.planned_at,
        trigger=Wakeup.Trigger.SCHEDULE,
        defaults={"assistant_id": schedule.assistant_id, "not_before": slot.not_before},
    )
    if made:
        done.planned.append(row.pk)


def _skipped_row(done: Ticked, schedule: Schedule, skipped: schedules.Skipped) -> None:
    row, made = Wakeup.objects.get_or_create(
        schedule=schedule,
        planned_at=skipped.planned_at,
        trigger=Wakeup.Trigger.SCHEDULE,
        defaults={
            "assistant_id": schedule.assistant_id,
            "not_before": skipped.planned_at,
            "state": Wakeup.State.ENDED,
            "outcome": skipped.outcome,
            "reason": skipped.reason,
            "ended_at": clock.now(),
        },
    )
    if made:
        done.skipped.append(row.pk)


def _broken(done: Ticked, schedule: Schedule, why: str) -> None:
    """A schedule that cannot be counted on: say so once, and stop looking at it every time."""
    assistant = Assistant.objects.get(pk=schedule.assistant_id)
    if Assistant.objects.disable(assistant.pk, f"its schedule cannot be used: {why}"[:500]):
        done.troubles.append(f"{assistant.name} is disabled: {why}")


# -- rows that wait ----------------------------------------------------------------------------
def settle_waiting(done: Ticked, now: dt.datetime) -> None:
    """End waiting wakeups that are not going to run, each with its reason."""
    busy = _running()
    first: dict[int, int] = {}
    for wakeup in _waiting(now):
        verdict = _why_not(wakeup, now, busy, first.setdefault(wakeup.assistant_id, wakeup.pk))
        if verdict is not None and Wakeup.objects.skip(wakeup.pk, *verdict):
            done.skipped.append(wakeup.pk)


def _running() -> set[int]:
    """Assistants with a wakeup under way."""
    running = Wakeup.objects.filter(state=Wakeup.State.RUNNING)
    return set(running.values_list("assistant_id", flat=True))


def _waiting(now: dt.datetime) -> QuerySet[Wakeup]:
    found = Wakeup.objects.filter(state=Wakeup.State.WAITING, not_before__lte=now)
    return found.select_related("assistant", "schedule").order_by("not_before", "pk")


def _why_not(
    wakeup: Wakeup, now: dt.datetime, busy: set[int], first: int
) -> tuple[str, str] | None:
    """Outcome and reason of one that is not going to run; None: it may, or it waits."""
    assistant = wakeup.assistant
    if assistant.removed_at is not None:
        return W.CANCELLED, "the assistant was removed"
    if wakeup.trigger == Wakeup.Trigger.HAND:
        return None
    if assistant.disabled_at is not None:
        return W.CANCELLED, "the assistant was disabled"
    if wakeup.trigger == Wakeup.Trigger.AGAIN:
        return None
    if assistant.not_before is not None and assistant.not_before > now:
        until = f"{assistant.not_before:%Y-%m-%d %H:%M:%S} UTC"
        failures = "1 failure" if assistant.failures == 1 else f"{assistant.failures} failures"
        many = f"after {failures}" if assistant.failures else "a limit"
        return W.BACKING_OFF, f"backing off until {until}: {many}"
    if (late := _too_late(wakeup, now)) is not None:
        return late
    return _overlapping(wakeup, busy, first)


def _too_late(wakeup: Wakeup, now: dt.datetime) -> tuple[str, str] | None:
    """A slot that found no room for longer than its schedule makes up for."""
    schedule = wakeup.schedule
    if schedule is None or schedule.missed != Schedule.Missed.YOUNG:
        return None
    waited_s = (now - wakeup.not_before).total_seconds()
    most_s = max(schedule.missed_within_s or 0, schedules.LATE_S)
    if waited_s <= most_s:
        return None
    return W.MISSED, "the host was busy for longer than missed_within allows"


def _overlapping(wakeup: Wakeup, busy: set[int], first: int) -> tuple[str, str] | None:
    if wakeup.assistant_id not in busy and wakeup.pk == first:
        return None
    if wakeup.pk != first:  # a queue of one: it is not woken twice in a row for one delay
        return W.OVERLAP, "another wakeup of this assistant was waiting already"
    if _overlap(wakeup.assistant) == "wait":
        return None
    return W.OVERLAP, "the wakeup before still ran (overlap = skip)"


def _overlap(assistant: Assistant) -> str:
    try:
        return restored(assistant.config).overlap
    except ValueError:  # msgspec.ValidationError is one; its wakeup will say what is wrong
        return "skip"


# -- rows become running wakeups --------------------------------------------------------------
def room(*, ringing_counts: bool = True) -> int:
    """How many wakeups may be started now. Runs that a worker was asked for take room as well.

    Args:
        ringing_counts: so do those whose process was told and may be on its way.
    """
    wakes, runs = Q(state=Wakeup.State.RUNNING), Q(state__in=LIVE_VALUES)
    if ringing_counts:
        wakes |= Q(state=Wakeup.State.WAITING) & _called()
        runs |= Q(state=Run.State.QUEUED) & _called()
    asked_for = Run.objects.filter(rung_at__isnull=False)
    taken = Wakeup.objects.filter(wakes).count() + asked_for.filter(runs).count()
    return max(int(settings.SANDUK_MAX_RUNS) - taken, 0)


def _called() -> Q:
    return rung_since(clock.now(), RING_AGAIN_S)


def ring_waiting(done: Ticked, ring: Ring) -> None:
    """Have the oldest waiting wakeups started, at most one of each assistant."""
    free = room()
    if not free:
        return
    busy = _running()
    for wakeup in _waiting(clock.now()).exclude(_called()):
        backing_off = wakeup.trigger != Wakeup.Trigger.HAND and _backs_off(wakeup)
        if wakeup.assistant_id in busy or backing_off:
            continue
        busy.add(wakeup.assistant_id)
        if not Wakeup.objects.ring(wakeup.pk):
            continue
        ring(wakeup)
        done.rung.append(wakeup.pk)
        free -= 1
        if not free:
            return


def is_wanted() -> bool:
    """Whether a look now would find a slot that has come, or a wakeup there is room for."""
    now = clock.now()
    if Schedule.objects.due(now).exists():
        return True
    busy = Wakeup.objects.filter(state=Wakeup.State.RUNNING).values("assistant_id")
    ready = _waiting(now).exclude(_called()).exclude(assistant_id__in=busy)
    waits = Q(assistant__not_before__gt=now) & ~Q(trigger=Wakeup.Trigger.HAND)
    return ready.exclude(waits).exists() and room() > 0


def _backs_off(wakeup: Wakeup) -> bool:
    until = wakeup.assistant.not_before
    return until is not None and until > clock.now()


def wake_by_hand(assistant: Assistant, *, asked_by: str, actor: Any = None) -> Wakeup:
    """Write down a wakeup that a person asks for now. Raises Refusal when it may not be woken.

    Args:
        asked_by: the OS account, or the name of `actor`.
        actor: the site user who asks. Of an OS account the row alone says it.
    """
    belonging.require(actor, assistant, "wake")
    if assistant.removed_at is not None:
        raise Refusal(f"assistant {assistant.name} was removed")
    if assistant.disabled_at is not None:
        raise Refusal(
            f"assistant {assistant.name} is disabled ({assistant.disabled_reason}); "
            f"sanduk assistant enable {assistant.name}"
        )
    if assistant.wakeups.filter(state=Wakeup.State.RUNNING).exists():
        raise Refusal(
            f"assistant {assistant.name} is awake already; "
            f"sanduk assistant history {assistant.name}"
        )
    now = clock.now()
    with transaction.atomic():
        wakeup = Wakeup.objects.create(
            assistant=assistant,
            trigger=Wakeup.Trigger.HAND,
            planned_at=now,
            not_before=now,
            asked_by="" if actor else asked_by,
        )
        if actor:
            subject = asked.subject_of(wakeup)
            audit.record(asked.ACTION, subject, actor=actor, assistant=assistant.name)
    return wakeup
