"""Snapshots of an assistant's workspace, taken by the host, outside the agent's reach."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from assistants.models.assistant import Assistant
from assistants.models.wakeup import Wakeup
from runs import clock


class SnapshotQuerySet(models.QuerySet["MemorySnapshot"]):
    def review(self, pk: int, to: str, **facts: Any) -> bool:
        """Accept or reject one that waits for it. False when that was done."""
        found = self.filter(pk=pk, review=MemorySnapshot.Review.WAITING)
        return bool(found.update(review=to, reviewed_at=clock.now(), **facts))

    def trusted(self) -> SnapshotQuerySet:
        """Those a wakeup may start from."""
        return self.filter(
            review__in=[MemorySnapshot.Review.NOT_ASKED, MemorySnapshot.Review.ACCEPTED]
        )


class MemorySnapshot(models.Model):
    """What the workspace held at one moment. Content decides what is the same, never times."""

    class Moment(models.TextChoices):
        BEFORE = "before"
        AFTER = "after"
        BY_HAND = "by_hand"  # restored, or taken on request

    class Review(models.TextChoices):
        NOT_ASKED = "not_asked"
        WAITING = "waiting"
        ACCEPTED = "accepted"
        REJECTED = "rejected"

    assistant = models.ForeignKey(Assistant, on_delete=models.CASCADE, related_name="snapshots")
    wakeup = models.ForeignKey(
        Wakeup, null=True, blank=True, on_delete=models.SET_NULL, related_name="snapshots"
    )
    moment = models.CharField(max_length=7, choices=Moment)
    taken_at = models.DateTimeField(default=clock.now)
    digest = models.CharField(max_length=64)  # of the list of entries: equal means the same memory
    files = models.PositiveIntegerField(default=0)
    size_bytes = models.BigIntegerField(default=0)
    left_out = models.JSONField(default=list)  # entries that could not be kept, each with why
    review = models.CharField(max_length=9, choices=Review, default=Review.NOT_ASKED)
    reviewed_at = models.DateTimeField(null=True, blank=True)
    reviewed_by = models.CharField(max_length=300, blank=True)
    reason = models.TextField(blank=True)

    objects = SnapshotQuerySet.as_manager()

    class Meta:
        ordering: ClassVar[list[str]] = ["-taken_at", "-pk"]
        permissions = [("review_memory", "Can accept, reject and restore what assistants remember")]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                name="snapshot_once_per_moment",
                fields=["wakeup", "moment"],
                condition=Q(wakeup__isnull=False, moment__in=["before", "after"]),
            )
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(name="snapshot_newest", fields=["assistant", "-taken_at"])
        ]

    def __str__(self) -> str:
        return f"memory of {self.assistant_id} {self.moment} {self.taken_at:%Y-%m-%d %H:%M:%S}"
