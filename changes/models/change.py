"""`Change`: a task on a repository, from its first attempt to the branch it becomes, if it does."""

from __future__ import annotations

import datetime as dt
import secrets
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from changes.models.repository import Repository
from runs import clock
from runs.models.run import RING_AGAIN_S, rung_since


def new_uid() -> str:
    return secrets.token_hex(6)


class State(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"  # an attempt is being made; an earlier one may be there already
    REVIEW = "review"  # a person is awaited
    LANDING = "landing"  # decided: the branch is being made
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNCHANGED = "unchanged"  # the agent ended well and changed nothing
    FAILED = "failed"


# from which states each is reached; nothing else ever writes a state
STEPS: dict[str, tuple[str, ...]] = {
    State.RUNNING: (State.QUEUED, State.REVIEW),
    State.REVIEW: (State.RUNNING, State.LANDING),
    State.LANDING: (State.REVIEW,),
    State.ACCEPTED: (State.LANDING,),
    State.REJECTED: (State.REVIEW,),
    State.UNCHANGED: (State.RUNNING,),
    State.FAILED: (State.QUEUED, State.RUNNING),
}
HELD = (State.RUNNING.value, State.LANDING.value)  # by a process, under a lease
OVER = ("accepted", "rejected", "unchanged", "failed")
_FREE: dict[str, Any] = {"lease_owner": "", "lease_until": None, "stop_by": ""}
_NOTHING_WANTED = {"wanted_task": "", "wanted_by": None, "wanted_as": ""}


class ChangeQuerySet(models.QuerySet["Change"]):
    """Every change of state is one conditional UPDATE; the number of rows says who won."""

    def waiting(self, repository: Repository) -> ChangeQuerySet:
        """Those of a repository that a person is awaited for: what may conflict with each other."""
        return self.filter(repository=repository, state=State.REVIEW)

    def unheard(self) -> ChangeQuerySet:
        """Those that a worker was told of a while ago, and that nobody has begun."""
        waits = Q(state=State.QUEUED) | Q(state=State.REVIEW) & ~Q(wanted_task="")
        rung = self.filter(waits, rung_at__isnull=False)
        return rung.exclude(rung_since(clock.now(), RING_AGAIN_S))

    def ring(self, pk: int) -> bool:
        """Say that a worker is told. False: it was, just now, or there is nothing to begin."""
        now = clock.now()
        waits = Q(state=State.QUEUED) | Q(state=State.REVIEW) & ~Q(wanted_task="")
        found = self.filter(waits, pk=pk).exclude(rung_since(now, RING_AGAIN_S))
        return bool(found.update(rung_at=now))

    def want(self, pk: int, task: str, by: Any, account: str) -> bool:
        """Ask for a revision that somebody else is to make."""
        found = self.filter(pk=pk, state=State.REVIEW, wanted_task="")
        return bool(found.update(wanted_task=task, wanted_by=by, wanted_as=account, rung_at=None))

    def claim(self, pk: int, owner: str, lease_s: float, *, revision: bool = False) -> bool:
        """Begin the first attempt, or a revision, during which the one before it is kept.

        False when somebody else did, or it is over.
        """
        held = {"lease_owner": owner, "lease_until": clock.now() + dt.timedelta(seconds=lease_s)}
        held |= {"rung_at": None, **_NOTHING_WANTED}
        source = State.REVIEW if revision else State.QUEUED
        return self._step(self.filter(pk=pk), State.RUNNING, source, **held)

    def renew(self, pk: int, owner: str, lease_s: float) -> bool:
        """Keep the lease. False when it was lost."""
        until = clock.now() + dt.timedelta(seconds=lease_s)
        held = self.filter(pk=pk, state__in=HELD, lease_owner=owner)
        return bool(held.update(lease_until=until, lease_beats=F("lease_beats") + 1))

    def present(self, pk: int, owner: str, attempt: Any) -> bool:
        """Put a finished attempt before a person. It must be this change's own."""
        found = self.filter(pk=pk, lease_owner=owner, attempts=attempt)
        return self._step(found, State.REVIEW, State.RUNNING, attempt=attempt, reason="", **_FREE)

    def give_up(self, pk: int, owner: str, state: str, reason: str) -> bool:
        """End an attempt that left nothing to look at, as `failed` or `unchanged`.

        A revision that fails takes nothing away: the attempt before it is reviewed again.
        """
        mine = self.filter(pk=pk, lease_owner=owner)
        return self._give_up(mine, state, reason)

    def end_lost(self, change: Change, reason: str) -> bool:
        """The same for one whose process is gone, unless its lease moved since `change` was read.

        One that was landing stays so: landing it again makes the same commit, or finds it.
        """
        lost = self.filter(
            pk=change.pk, lease_owner=change.lease_owner, lease_beats=change.lease_beats
        )
        return self._give_up(lost, State.FAILED, reason)

    def drop(self, pk: int, reason: str) -> bool:
        """End one that was never begun."""
        return self._step(self.filter(pk=pk), State.FAILED, State.QUEUED, reason=reason)

    def begin_landing(self, pk: int, attempt: int, plan: dict[str, Any], **facts: Any) -> bool:
        """Leave review for good reason: `attempt` is what was decided on, `plan` what lands."""
        found = self.filter(pk=pk, attempt=attempt)
        return self._step(found, State.LANDING, landing=plan, decided_at=clock.now(), **facts)

    def reject(self, pk: int, attempt: int, **facts: Any) -> bool:
        found = self.filter(pk=pk, attempt=attempt)
        return self._step(found, State.REJECTED, decided_at=clock.now(), **facts)

    def finish_landing(self, pk: int, commit: str) -> bool:
        """The branch is there, and was read back."""
        facts = {"landed_commit": commit, "landed_at": clock.now(), "reason": "", **_FREE}
        return self._step(self.filter(pk=pk), State.ACCEPTED, **facts)

    def undo_landing(self, pk: int, reason: str) -> bool:
        """Back to review: it cannot land as it was planned, and nothing of it did."""
        facts: dict[str, Any] = {"landing": {}, "decided_at": None, "decided_by": "", **_FREE}
        facts |= {"reason": reason, "round": F("round") + 1}
        return self._step(self.filter(pk=pk), State.REVIEW, State.LANDING, **facts)

    def _give_up(self, found: ChangeQuerySet, state: str, reason: str) -> bool:
        if state not in (State.FAILED, State.UNCHANGED):
            raise ValueError(f"giving up does not lead to {state}")
        kept = found.filter(attempt__isnull=False)
        if self._step(kept, State.REVIEW, State.RUNNING, reason=reason, **_FREE):
            return True
        none = found.filter(attempt__isnull=True)
        return self._step(none, state, State.RUNNING, reason=reason, **_FREE)

    def _step(self, found: ChangeQuerySet, to: str, *sources: str, **facts: Any) -> bool:
        legal = STEPS[to]
        for source in sources:
            if source not in legal:
                raise ValueError(f"a change never goes from {source} to {to}")
        found = found.filter(state__in=sources or legal)
        return bool(found.update(state=to, state_at=clock.now(), **facts))


class Change(models.Model):
    """A task on a repository, its attempts and what was decided.

    queued -> running -> review -> landing -> accepted; review -> rejected, or running again for a
    revision. What never came to anything is `failed` or `unchanged`.
    """

    State = State

    class Kind(models.TextChoices):
        TASK = "task"
        SHELL = "shell"  # a person worked in the box themselves

    uid = models.CharField(max_length=12, unique=True, default=new_uid, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="changes")
    kind = models.CharField(max_length=5, choices=Kind, default=Kind.TASK)
    task = models.TextField()
    batch = models.CharField(max_length=12, blank=True)  # those that were asked for together
    base_ref = models.CharField(max_length=1000, blank=True)  # as it was asked for
    base_commit = models.CharField(max_length=64, blank=True)
    agent = models.CharField(max_length=200, blank=True)
    model = models.CharField(max_length=200, blank=True)
    order = models.JSONField(default=dict)  # runs.order.Order; holds no secret
    history = models.PositiveIntegerField(null=True, blank=True)  # commits the agent sees
    keep_commits = models.BooleanField(default=False)  # the agent's own land, as a series
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    requested_as = models.CharField(max_length=150, blank=True)  # the OS account at a terminal
    created_at = models.DateTimeField(default=clock.now)

    state = models.CharField(max_length=9, choices=State, default=State.QUEUED)
    state_at = models.DateTimeField(default=clock.now)
    reason = models.TextField(blank=True)  # why it failed, or why it is in review again
    attempt = models.ForeignKey(  # the one that is reviewed, or that was decided on
        "changes.Attempt", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    lease_owner = models.CharField(max_length=200, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    lease_beats = models.PositiveIntegerField(default=0)
    run = models.ForeignKey(  # the last one that was begun for it
        "runs.Run", null=True, blank=True, on_delete=models.PROTECT, related_name="changes"
    )
    reserved_usd = models.FloatField(default=0)  # of its batch's budget: set aside, then spent
    rung_at = models.DateTimeField(null=True, blank=True)  # a worker was told of it
    stop_by = models.CharField(max_length=300, blank=True)  # who wants it ended before it began

    # a revision that was asked for, and that a worker is to make
    wanted_task = models.TextField(blank=True)
    wanted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    wanted_as = models.CharField(max_length=150, blank=True)

    # a landing that could not be done is decided on anew: its decisions are of the round before
    round = models.PositiveIntegerField(default=1)
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=300, blank=True)
    landing = models.JSONField(default=dict)  # changes.landing_plan.Plan: what lands, word for word
    landed_commit = models.CharField(max_length=64, blank=True)
    landed_at = models.DateTimeField(null=True, blank=True)

    objects = ChangeQuerySet.as_manager()

    class Meta:
        ordering: ClassVar[list[str]] = ["-created_at", "-pk"]
        permissions = [
            ("start_change", "Can ask for changes and revisions"),
            ("decide_change", "Can accept and reject changes"),
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                name="change_reviewed_is_something",
                condition=~Q(state__in=["review", "landing", "accepted", "rejected"])
                | Q(attempt__isnull=False),
            ),
            models.CheckConstraint(
                name="change_of_nothing_has_no_attempt",
                condition=~Q(state__in=["queued", "unchanged", "failed"]) | Q(attempt__isnull=True),
            ),
            models.CheckConstraint(
                name="change_decided_when",
                condition=Q(state__in=["landing", "accepted", "rejected"], decided_at__isnull=False)
                | (~Q(state__in=["landing", "accepted", "rejected"]) & Q(decided_at__isnull=True)),
            ),
            models.CheckConstraint(
                name="change_accepted_has_landed",
                condition=(Q(state="accepted", landed_at__isnull=False) & ~Q(landed_commit=""))
                | (~Q(state="accepted") & Q(landed_at__isnull=True, landed_commit="")),
            ),
            models.CheckConstraint(
                name="change_lease_only_while_held",
                condition=Q(lease_until__isnull=True) | Q(state__in=HELD),
            ),
            models.CheckConstraint(
                name="change_runs_under_a_lease",
                condition=~Q(state="running") | Q(lease_until__isnull=False),
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            # what waits, in one repository and in all
            models.Index(name="change_waiting", fields=["repository"], condition=Q(state="review")),
            # whose process may be gone
            models.Index(name="change_held", fields=["lease_until"], condition=Q(state__in=HELD)),
            models.Index(name="change_newest", fields=["-created_at"]),
            models.Index(name="change_batch", fields=["batch"], condition=~Q(batch="")),
        ]

    def __str__(self) -> str:
        return f"change {self.uid}"

    @property
    def is_over(self) -> bool:
        return self.state in OVER
