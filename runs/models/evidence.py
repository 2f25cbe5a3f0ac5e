"""What happened in a run: its trace and its relayed calls. Appended, never changed."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from runs.models.run import Run


class RunEvent(models.Model):
    """One line of the live trace, or one step of the run itself."""

    class Kind(models.TextChoices):
        STEP = "step"  # what sanduk did
        TEXT = "text"  # the agent's words, from here on hostile
        TOOL = "tool"
        PROBLEM = "problem"
        NOTE = "note"
        STDERR = "stderr"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events")
    sequence = models.PositiveIntegerField()
    at = models.DateTimeField()
    kind = models.CharField(max_length=8, choices=Kind)
    text = models.TextField()
    detail = models.TextField(blank=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["sequence"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(name="runevent_order", fields=["run", "sequence"])
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.sequence} of run {self.run_id}"


class RelayCall(models.Model):
    """One request that reached a run's relay, relayed or refused."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="calls")
    sequence = models.PositiveIntegerField()
    method = models.CharField(max_length=16)
    path = models.CharField(max_length=2000)
    protocol = models.CharField(max_length=20, blank=True)
    model_asked = models.CharField(max_length=200, blank=True)
    model_answered = models.CharField(max_length=200, blank=True)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    refusal = models.CharField(max_length=500, blank=True)
    error = models.CharField(max_length=500, blank=True)
    completed = models.BooleanField(default=False)
    started_at = models.DateTimeField()
    first_byte_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    bytes_in = models.BigIntegerField(default=0)
    bytes_out = models.BigIntegerField(default=0)
    input_tokens = models.BigIntegerField(null=True, blank=True)
    cache_read_tokens = models.BigIntegerField(null=True, blank=True)
    cache_write_tokens = models.BigIntegerField(null=True, blank=True)
    output_tokens = models.BigIntegerField(null=True, blank=True)
    reasoning_tokens = models.BigIntegerField(null=True, blank=True)
    raw_usage = models.JSONField(default=dict)
    reported_cost_usd = models.FloatField(null=True, blank=True)
    cost_usd = models.FloatField(null=True, blank=True)
    cost_kind = models.CharField(max_length=11, blank=True)  # exact, reported, lower_bound, unknown
    clamped = models.BooleanField(default=False)

    class Meta:
        ordering: ClassVar[list[str]] = ["sequence"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(name="relaycall_order", fields=["run", "sequence"])
        ]
        indexes: ClassVar[list[models.Index]] = [
            # what a model cost since a day
            models.Index(name="relaycall_begun", fields=["started_at"])
        ]

    def __str__(self) -> str:
        return f"call {self.sequence} of run {self.run_id}"


class EgressAttempt(models.Model):
    """One use of a sealed run's egress door, let through or not."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="egress_attempts")
    sequence = models.PositiveIntegerField()
    host = models.CharField(max_length=300, blank=True)  # empty: the request could not be read
    port = models.PositiveIntegerField(default=0)
    address = models.CharField(max_length=60, blank=True)
    allowed = models.BooleanField()
    listed = models.BooleanField(default=False)
    reason = models.CharField(max_length=500, blank=True)
    flag = models.CharField(max_length=400, blank=True)  # what would allow it
    bytes_out = models.BigIntegerField(default=0)
    bytes_in = models.BigIntegerField(default=0)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["sequence"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(name="egressattempt_order", fields=["run", "sequence"])
        ]

    def __str__(self) -> str:
        return f"way out {self.sequence} of run {self.run_id}"
