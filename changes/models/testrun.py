"""`TestRun`: the operator's tests on exactly one attempt, in a fresh box."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from changes.models.attempt import Attempt
from runs import clock
from runs.models import Run


class TestRunQuerySet(models.QuerySet["TestRun"]):
    def finish(self, pk: int, outcome: str, **facts: Any) -> bool:
        """Say how it ended, once."""
        if outcome not in TestRun.Outcome.values or not outcome:
            raise ValueError(f"tests do not end as {outcome!r}")
        open_ = self.filter(pk=pk, outcome="")
        return bool(open_.update(outcome=outcome, ended_at=clock.now(), **facts))

    def last_of(self, digest: str, command: str) -> TestRun | None:
        """The last ended one of this exact content with this exact command."""
        ended = self.filter(digest=digest, command=command).exclude(outcome="")
        return ended.order_by("-ended_at", "-pk").first()


class TestRun(models.Model):
    """One run of a test command on base + patch. Green only counts for `digest` and `command`."""

    __test__ = False  # pytest would collect it by its name

    class Outcome(models.TextChoices):
        PASSED = "passed"
        FAILED = "failed"
        TIMED_OUT = "timed_out"
        NOT_RUN = "not_run"  # the box could not be made, or was lost: no answer

    attempt = models.ForeignKey(Attempt, on_delete=models.PROTECT, related_name="tests")
    digest = models.CharField(max_length=64)
    command = models.TextField()
    run = models.ForeignKey(
        Run, null=True, blank=True, on_delete=models.PROTECT, related_name="test_runs"
    )
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    requested_as = models.CharField(max_length=150, blank=True)
    started_at = models.DateTimeField(default=clock.now)
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=9, choices=Outcome, blank=True)  # "": it goes on
    exit_code = models.IntegerField(null=True, blank=True)
    reason = models.TextField(blank=True)
    output = models.TextField(blank=True)  # its end, hostile
    output_bytes = models.PositiveBigIntegerField(default=0)  # of the whole

    objects = TestRunQuerySet.as_manager()

    class Meta:
        ordering: ClassVar[list[str]] = ["-started_at", "-pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                name="testrun_ended_when",
                condition=Q(outcome="", ended_at__isnull=True)
                | (~Q(outcome="") & Q(ended_at__isnull=False)),
            ),
            # nothing but an exit status of zero is green
            models.CheckConstraint(
                name="testrun_green_is_zero",
                condition=~Q(outcome="passed") | Q(exit_code=0, exit_code__isnull=False),
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(name="testrun_of_content", fields=["digest"])
        ]

    def __str__(self) -> str:
        return f"tests of attempt {self.attempt_id}"
