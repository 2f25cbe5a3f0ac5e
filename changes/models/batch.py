"""`Batch`: changes of one repository that were asked for together, under one budget."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from changes.models.change import new_uid
from changes.models.repository import Repository
from runs import clock


class Batch(models.Model):
    """How many of its changes are made at a time, and what they may cost together.

    A change names its batch by `uid`.
    """

    uid = models.CharField(max_length=12, unique=True, default=new_uid, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="batches")
    max_parallel = models.PositiveIntegerField(default=1)
    total_budget_usd = models.FloatField(null=True, blank=True)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    requested_as = models.CharField(max_length=150, blank=True)
    owner = models.CharField(max_length=200, blank=True)  # the process that makes its changes
    created_at = models.DateTimeField(default=clock.now)
    cancelled_at = models.DateTimeField(null=True, blank=True)
    cancelled_by = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["-created_at", "-pk"]
        verbose_name_plural = "batches"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(name="batch_makes_some", condition=Q(max_parallel__gte=1)),
            models.CheckConstraint(
                name="batch_has_money",
                condition=Q(total_budget_usd__isnull=True) | Q(total_budget_usd__gt=0),
            ),
        ]

    def __str__(self) -> str:
        return f"batch {self.uid}"
