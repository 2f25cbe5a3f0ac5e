"""`Wakeup`: one planned slot of a schedule, or one call by hand, and what came of it."""

from __future__ import annotations

import datetime as dt
from typing import Any, ClassVar

from django.db import models
from django.db.models import F, Q

from assistants.models.assistant import Assistant, Schedule
from runs import clock
from runs.models import Run
from runs.models.run import RING_AGAIN_S, rung_since


class WakeupQuerySet(models.QuerySet["Wakeup"]):
    """Every change of state is one conditional UPDATE; the number of rows says who won."""

    def claim(self, pk: int, owner: str, lease_s: float) -> bool:
        """Take a waiting wakeup for this process. False: it is somebody else's, or over."""
        now = clock.now()
        return bool(
            self.filter(pk=pk, state=Wakeup.State.WAITING).update(
                state=Wakeup.State.RUNNING,
                started_at=now,
                lease_owner=owner,
                lease_until=now + dt.timedelta(seconds=lease_s),
            )
        )

    def renew(self, pk: int, owner: str, lease_s: float) -> bool:
        """Keep it. False when it was lost: stop at once."""
        return bool(
            self.filter(pk=pk, state=Wakeup.State.RUNNING, lease_owner=owner).update(
                lease_until=clock.now() + dt.timedelta(seconds=lease_s),
                lease_beats=F("lease_beats") + 1,
            )
        )

    def ring(self, pk: int) -> bool:
        """Say that a process was told of a waiting wakeup. False: another one was, just now."""
        now = clock.now()
        fresh = rung_since(now, RING_AGAIN_S)
        found = self.filter(pk=pk, state=Wakeup.State.WAITING).exclude(fresh)
        return bool(found.update(rung_at=now))

    def take_over(self, wakeup: Wakeup, owner: str, lease_s: float) -> bool:
        """Hold one whose process is gone, to end it, unless its lease moved since it was read."""
        found = self.filter(
            pk=wakeup.pk,
            state=Wakeup.State.RUNNING,
            lease_owner=wakeup.lease_owner,
            lease_beats=wakeup.lease_beats,
        )
        until = clock.now() + dt.timedelta(seconds=lease_s)
        return bool(
            found.update(lease_owner=owner, lease_until=until, lease_beats=F("lease_beats") + 1)
        )

    def end(self, pk: int, owner: str, outcome: str, **facts: Any) -> bool:
        """End what this process holds."""
        found = self.filter(pk=pk, state=Wakeup.State.RUNNING, lease_owner=owner)
        return bool(found.update(**_ended(outcome), **facts))

    def end_lost(self, wakeup: Wakeup, reason: str) -> bool:
        """End one whose process is gone, unless its lease moved since `wakeup` was read."""
        found = self.filter(
            pk=wakeup.pk,
            state=Wakeup.State.RUNNING,
            lease_owner=wakeup.lease_owner,
            lease_beats=wakeup.lease_beats,
        )
        return bool(found.update(**_ended(Wakeup.Outcome.INTERRUPTED), reason=reason))

    def skip(self, pk: int, outcome: str, reason: str = "") -> bool:
        """End a waiting one that is not going to run. The row stays, with its reason."""
        found = self.filter(pk=pk, state=Wakeup.State.WAITING)
        return bool(found.update(**_ended(outcome), reason=reason))


def _ended(outcome: str) -> dict[str, Any]:
    return {
        "state": Wakeup.State.ENDED,
        "outcome": outcome,
        "ended_at": clock.now(),
        "lease_owner": "",
        "lease_until": None,
    }


class Wakeup(models.Model):
    """waiting -> running -> ended. The row of a planned slot is the lock on that slot."""

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        ENDED = "ended"

    class Trigger(models.TextChoices):
        SCHEDULE = "schedule"
        HAND = "hand"
        AGAIN = "again"  # an interrupted one, once more

    class Outcome(models.TextChoices):
        """How it ended: as its run did, or why there was no run."""

        SUCCEEDED = "succeeded"
        FAILED = "failed"
        INTERRUPTED = "interrupted"
        RATE_LIMITED = "rate_limited"
        MISSED = "missed"  # its time had passed: the host was off, or busy
        OVERLAP = "overlap"  # the one before still ran
        QUIET = "quiet"
        GATE = "gate"  # the gate script said no
        NOTHING = "nothing"  # neither a brief nor a message
        BACKING_OFF = "backing_off"
        BUDGET = "budget"
        BROKEN = "broken"  # its files, its gate or its configuration
        CANCELLED = "cancelled"

    assistant = models.ForeignKey(Assistant, on_delete=models.CASCADE, related_name="wakeups")
    schedule = models.ForeignKey(
        Schedule, null=True, blank=True, on_delete=models.SET_NULL, related_name="wakeups"
    )
    trigger = models.CharField(max_length=8, choices=Trigger)
    planned_at = models.DateTimeField()
    not_before = models.DateTimeField()  # planned, with its jitter and stagger
    again_of = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="again"
    )
    asked_by = models.CharField(max_length=150, blank=True)

    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    outcome = models.CharField(max_length=12, choices=Outcome, blank=True)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(default=clock.now)
    rung_at = models.DateTimeField(null=True, blank=True)  # when a process was told to look
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    lease_owner = models.CharField(max_length=200, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    lease_beats = models.PositiveIntegerField(default=0)

    run = models.OneToOneField(
        Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="wakeup"
    )
    gate_output = models.TextField(blank=True)  # hostile, capped
    reserved_usd = models.FloatField(default=0)  # of the daily budget; ended: what it counts for

    objects = WakeupQuerySet.as_manager()

    class Meta:
        ordering: ClassVar[list[str]] = ["-planned_at", "-pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                name="wakeup_once_per_slot",
                fields=["schedule", "planned_at"],
                condition=Q(schedule__isnull=False, trigger="schedule"),
            ),
            # the memory of one assistant is written by one run at a time
            models.UniqueConstraint(
                name="wakeup_one_running", fields=["assistant"], condition=Q(state="running")
            ),
            models.CheckConstraint(
                name="wakeup_ended_has_outcome",
                condition=~Q(state="ended") | (~Q(outcome="") & Q(ended_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="wakeup_lease_only_while_running",
                condition=Q(lease_until__isnull=True) | Q(state="running"),
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                name="wakeup_waiting", fields=["not_before"], condition=Q(state="waiting")
            ),
            models.Index(name="wakeup_history", fields=["assistant", "-planned_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.assistant_id} at {self.planned_at:%Y-%m-%d %H:%M:%S}"
