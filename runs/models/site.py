"""What was chosen for this installation as a whole, with who may choose it."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from runs import clock


class SiteSetting(models.Model):
    """One choice, by name; `runs.four_eyes` and the first-run pages say which there are."""

    name = models.CharField(max_length=60, unique=True)
    value = models.JSONField()
    changed_at = models.DateTimeField(default=clock.now)
    changed_by = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["name"]

    def __str__(self) -> str:
        return self.name
