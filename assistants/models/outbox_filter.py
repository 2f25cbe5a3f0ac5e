"""A way to look at the outbox that somebody keeps for themselves."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models


class OutboxFilter(models.Model):
    """One person's filter by name; `words` are the fields of the list's form."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="outbox_filters"
    )
    name = models.CharField(max_length=60)
    words = models.JSONField(default=dict)  # assistants.filtering.Filter

    class Meta:
        ordering: ClassVar[list[str]] = ["name"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(name="outbox_filter_name", fields=["user", "name"])
        ]

    def __str__(self) -> str:
        return self.name
