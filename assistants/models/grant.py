"""What an assistant's owner lets somebody else do with it."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from assistants.models.assistant import Assistant
from runs import clock


class Grant(models.Model):
    """One person may see one assistant that is somebody else's; perhaps tell or wake it, too.

    It adds nothing to what their roles let them do: both must say yes.
    """

    assistant = models.ForeignKey(Assistant, on_delete=models.CASCADE, related_name="grants")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="assistant_grants"
    )
    may_tell = models.BooleanField(default=False)
    may_wake = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=clock.now)

    class Meta:
        ordering: ClassVar[list[str]] = ["pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(name="grant_once", fields=["assistant", "user"])
        ]

    def __str__(self) -> str:
        return f"{self.user_id} with {self.assistant_id}"
