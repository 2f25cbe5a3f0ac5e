"""Of what a person wants an e-mail."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from runs import clock


class NoticeQuerySet(models.QuerySet["Notice"]):
    def wanted(self) -> NoticeQuerySet:
        """Of people who are let in, have an address, and want any."""
        wants = Q(of_items=True) | Q(of_troubles=True)
        return self.filter(wants, user__is_active=True).exclude(user__email="")

    def claim(self, notice: Notice, **columns: object) -> bool:
        """Note what is told of now. False when another process tells of it."""
        return bool(self.filter(pk=notice.pk, looked_at=notice.looked_at).update(**columns))


class Notice(models.Model):
    """What one person is told of by e-mail: how much and where to look, never what it says."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notice"
    )
    # items, and changes and skills beside them, that wait for a decision they may take
    of_items = models.BooleanField(default=False)
    # assistants disabled, deliveries gone wrong, runs interrupted, changes failed, the host itself
    of_troubles = models.BooleanField(default=False)
    looked_at = models.DateTimeField(default=clock.now)  # they were told of what came before

    objects = NoticeQuerySet.as_manager()

    class Meta:
        ordering: ClassVar[list[str]] = ["pk"]

    def __str__(self) -> str:
        return f"notice of {self.user_id}"
