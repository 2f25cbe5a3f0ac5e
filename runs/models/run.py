"""`Run`: the one durable record of an agent in a container, and its legal transitions."""

from __future__ import annotations

import datetime as dt
import secrets
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from runs import clock


def new_uid() -> str:
    return secrets.token_hex(6)


class State(models.TextChoices):
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    ENDING = "ending"
    ENDED = "ended"


class Outcome(models.TextChoices):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REFUSED = "refused"
    NEEDS_INPUT = "needs_input"
    BUDGET_EXHAUSTED = "budget_exhausted"
    RATE_LIMITED = "rate_limited"
    TIMED_OUT = "timed_out"
    STALLED = "stalled"
    CANCELLED = "cancelled"
    OUT_OF_MEMORY = "out_of_memory"
    INTERRUPTED = "interrupted"


EXIT_CODES: dict[str, int] = {
    Outcome.SUCCEEDED: 0,
    Outcome.FAILED: 1,
    Outcome.REFUSED: 2,
    Outcome.NEEDS_INPUT: 3,
    Outcome.BUDGET_EXHAUSTED: 4,
    Outcome.RATE_LIMITED: 5,
    Outcome.TIMED_OUT: 124,
    Outcome.STALLED: 125,
    Outcome.CANCELLED: 130,
    Outcome.OUT_OF_MEMORY: 137,
    Outcome.INTERRUPTED: 143,
}

LIVE = (State.STARTING, State.RUNNING, State.ENDING)
LIVE_VALUES = [state.value for state in LIVE]
RING_AGAIN_S = 90.0  # a process that was told and did not come is not waited for any longer


def rung_since(now: dt.datetime, seconds: float) -> Q:
    """Those whose process was told of them within the last `seconds`.

    A stamp a little later than `now` is another process's, of just now; one that lies further
    ahead was written before the clock was set back.
    """
    span = dt.timedelta(seconds=seconds)
    return Q(rung_at__gt=now - span, rung_at__lt=now + span)


class RunQuerySet(models.QuerySet["Run"]):
    """Every change of state is one conditional UPDATE; the number of rows says who won."""

    def live(self) -> RunQuerySet:
        """Runs that some process holds, or held when it died."""
        return self.filter(state__in=LIVE)

    def held_by(self, uid: str, owner: str) -> RunQuerySet:
        return self.live().filter(uid=uid, lease_owner=owner)

    def claim(self, uid: str, owner: str, lease_s: float) -> bool:
        """Take a queued run. False when somebody else has it, or it was cancelled.

        Raises IntegrityError when another live run holds the same workspace.
        """
        now = clock.now()
        return bool(
            self.filter(uid=uid, state=State.QUEUED, stop_requested_at=None).update(
                state=State.STARTING,
                claimed_at=now,
                lease_owner=owner,
                lease_until=now + dt.timedelta(seconds=lease_s),
            )
        )

    def unheard(self) -> RunQuerySet:
        """Queued runs that a worker was told of a while ago, and that nobody has taken."""
        rung = self.filter(state=State.QUEUED, rung_at__isnull=False)
        return rung.exclude(rung_since(clock.now(), RING_AGAIN_S))

    def ring(self, pk: int) -> bool:
        """Say that a worker is told of a queued run. False: it was, just now, or it is taken."""
        now = clock.now()
        found = self.filter(pk=pk, state=State.QUEUED).exclude(rung_since(now, RING_AGAIN_S))
        return bool(found.update(rung_at=now))

    def refuse(self, pk: int, reason: str) -> bool:
        """End a queued run that cannot be started."""
        return bool(
            self.filter(pk=pk, state=State.QUEUED).update(
                state=State.ENDED,
                outcome=Outcome.REFUSED,
                exit_code=EXIT_CODES[Outcome.REFUSED],
                reason=reason,
                ended_at=clock.now(),
            )
        )

    def renew(self, uid: str, owner: str, lease_s: float) -> bool:
        """Keep the lease. False when it was lost: tear down at once."""
        return bool(
            self.held_by(uid, owner).update(
                lease_until=clock.now() + dt.timedelta(seconds=lease_s),
                lease_beats=F("lease_beats") + 1,
            )
        )

    def mark_running(self, uid: str, owner: str, **facts: Any) -> bool:
        return bool(
            self.held_by(uid, owner)
            .filter(state=State.STARTING)
            .update(state=State.RUNNING, started_at=clock.now(), **facts)
        )

    def mark_ending(self, uid: str, owner: str, **facts: Any) -> bool:
        """The outcome is known, what the run took is being given back."""
        return bool(self.held_by(uid, owner).update(state=State.ENDING, **facts))

    def mark_ended(self, uid: str, owner: str, **facts: Any) -> bool:
        return bool(
            self.held_by(uid, owner).update(
                state=State.ENDED,
                ended_at=clock.now(),
                lease_owner="",
                lease_until=None,
                **facts,
            )
        )

    def end_lost(
        self, run: Run, reason: str, *, seen_at: dt.datetime | None = None, **facts: Any
    ) -> bool:
        """End a run whose owner is gone, unless its lease moved since `run` was read.

        A run that already knew its outcome keeps it; any other ends `interrupted`, with `facts`.

        Args:
            seen_at: the last sign of it, when that is known; it ended then or later.
        """
        outcome = run.outcome or Outcome.INTERRUPTED
        return bool(
            self.live()
            .filter(uid=run.uid, lease_owner=run.lease_owner, lease_beats=run.lease_beats)
            .update(
                state=State.ENDED,
                outcome=outcome,
                exit_code=EXIT_CODES[outcome],
                reason=run.reason or reason,
                ended_at=seen_at or clock.now(),
                end_is_lower_bound=True,
                lease_owner="",
                lease_until=None,
                **({} if run.outcome else facts),
            )
        )

    def request_stop(self, uid: str, by: str) -> str:
        """Ask a run to stop: "cancelled" (it had not started), "asked", or "" (nothing to stop)."""
        now = clock.now()
        if self.filter(uid=uid, state=State.QUEUED).update(
            state=State.ENDED,
            outcome=Outcome.CANCELLED,
            exit_code=EXIT_CODES[Outcome.CANCELLED],
            reason=f"cancelled by {by} before it started",
            stop_requested_at=now,
            stop_requested_by=by,
            ended_at=now,
        ):
            return "cancelled"
        asked = self.live().filter(uid=uid, stop_requested_at=None)
        if asked.update(stop_requested_at=now, stop_requested_by=by):
            return "asked"
        return "asked" if self.live().filter(uid=uid).exists() else ""


class Run(models.Model):
    """One agent (or command) in one disposable container.

    queued -> starting -> running -> ending -> ended; a cancelled or refused run may skip states,
    none goes back. While live it carries a lease; ended, it carries one outcome.
    """

    State = State
    Outcome = Outcome

    class Kind(models.TextChoices):
        AGENT = "agent"
        COMMAND = "command"

    class Trigger(models.TextChoices):
        TERMINAL = "terminal"
        WEB = "web"
        SCHEDULE = "schedule"
        CHANGE = "change"

    class Report(models.TextChoices):
        NONE = ""
        MISSING = "missing"
        SAVED = "saved"
        CUT = "cut"
        REFUSED = "refused"  # a link, a pipe, a directory: not read

    uid = models.CharField(max_length=12, unique=True, default=new_uid, editable=False)
    kind = models.CharField(max_length=8, choices=Kind, default=Kind.AGENT)
    trigger = models.CharField(max_length=8, choices=Trigger, default=Trigger.TERMINAL)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    requested_as = models.CharField(max_length=150, blank=True)  # the OS account at a terminal

    agent = models.CharField(max_length=200)
    provider = models.CharField(max_length=100, blank=True)
    model = models.CharField(max_length=200, blank=True)
    mode = models.CharField(max_length=10)
    engine = models.CharField(max_length=200)
    recipe = models.CharField(max_length=1000, blank=True)
    image = models.CharField(max_length=500, blank=True)
    workspace = models.CharField(max_length=4096)
    task = models.TextField()
    order = models.JSONField(default=dict)  # runs.order.Order; holds no secret

    state = models.CharField(max_length=8, choices=State, default=State.QUEUED)
    outcome = models.CharField(max_length=16, choices=Outcome, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    reason = models.TextField(blank=True)
    refused_by_host = models.BooleanField(default=False)  # nothing was wrong with the order
    agent_exit_code = models.IntegerField(null=True, blank=True)

    created_at = models.DateTimeField(default=clock.now)
    rung_at = models.DateTimeField(null=True, blank=True)  # a worker was told; null: none shall be
    claimed_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    end_is_lower_bound = models.BooleanField(default=False)  # its process was killed: last seen
    rate_limit_resets_at = models.DateTimeField(null=True, blank=True)

    lease_owner = models.CharField(max_length=200, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    lease_beats = models.PositiveIntegerField(default=0)
    stop_requested_at = models.DateTimeField(null=True, blank=True)
    stop_requested_by = models.CharField(max_length=150, blank=True)
    kept_container = models.CharField(max_length=64, blank=True)

    report_state = models.CharField(max_length=8, choices=Report, blank=True)
    report = models.TextField(blank=True)
    report_sha256 = models.CharField(max_length=64, blank=True)
    report_bytes = models.BigIntegerField(null=True, blank=True)
    displaced_report = models.CharField(max_length=200, blank=True)  # the user's own, moved aside

    final_text = models.TextField(blank=True)
    tally = models.JSONField(default=dict)
    certificate = models.JSONField(default=dict)
    first_call_at = models.DateTimeField(null=True, blank=True)
    calls_relayed = models.PositiveIntegerField(default=0)
    calls_refused = models.PositiveIntegerField(default=0)
    calls_clamped = models.PositiveIntegerField(default=0)
    spent_usd = models.FloatField(default=0)  # as far as it is known
    spent_is_lower_bound = models.BooleanField(default=False)
    spent_tokens = models.BigIntegerField(default=0)
    calls_completed = models.PositiveIntegerField(default=0)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering: ClassVar[list[str]] = ["-created_at", "-pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                name="run_lease_only_while_live",
                condition=Q(lease_until__isnull=True) | Q(state__in=LIVE_VALUES),
            ),
            models.CheckConstraint(
                name="run_ended_has_outcome",
                condition=~Q(state="ended") | (~Q(outcome="") & Q(ended_at__isnull=False)),
            ),
            # two agents in one directory would overwrite each other's work and report
            models.UniqueConstraint(
                name="run_one_live_per_workspace",
                fields=["workspace"],
                condition=Q(state__in=LIVE_VALUES),
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            # every command and the worker's minute ask for these; ended runs pile up outside it
            models.Index(
                name="run_live_lease", fields=["lease_until"], condition=Q(state__in=LIVE_VALUES)
            ),
            # the same look asks which of those that wait were not heard of
            models.Index(name="run_queued", fields=["rung_at"], condition=Q(state="queued")),
            models.Index(name="run_newest", fields=["-created_at"]),
            # what was spent is summed from this alone: the rows themselves are wide
            models.Index(
                name="run_spent",
                fields=[
                    "created_at",
                    "spent_usd",
                    "spent_is_lower_bound",
                    "spent_tokens",
                    "calls_relayed",
                    "provider",
                    "agent",
                ],
            ),
        ]
        permissions = [
            ("start_run", "Can start a run"),
            ("stop_run", "Can stop a run"),
            ("view_request_bodies", "Can read what was sent to a provider"),
        ]

    def __str__(self) -> str:
        return f"run {self.uid}"

    @property
    def is_live(self) -> bool:
        return self.state in LIVE_VALUES

    @property
    def first_call_s(self) -> float | None:
        """How long the agent took to make its first relayed call; None when it made none."""
        if self.started_at is None or self.first_call_at is None:
            return None
        return max((self.first_call_at - self.started_at).total_seconds(), 0.0)

    @property
    def duration_s(self) -> float | None:
        """From the agent's start to the end; None before it has ended or if it never started."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.started_at).total_seconds()
