"""What an assistant's brief said, each time it was read and said something else."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from assistants.models.assistant import Assistant
from assistants.models.wakeup import Wakeup
from runs import clock


class BriefVersion(models.Model):
    """One text of a brief. It is written by hand, on the host; this is when it was first read."""

    assistant = models.ForeignKey(Assistant, on_delete=models.CASCADE, related_name="briefs")
    text = models.TextField()
    sha256 = models.CharField(max_length=64)
    read_at = models.DateTimeField(default=clock.now)
    # the wakeup that was first given it; null: it was read as the assistant was added
    wakeup = models.ForeignKey(
        Wakeup, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    account = models.CharField(max_length=150, blank=True)  # the OS account that added it

    class Meta:
        ordering: ClassVar[list[str]] = ["-pk"]

    def __str__(self) -> str:
        return f"brief {self.pk} of {self.assistant_id}"
