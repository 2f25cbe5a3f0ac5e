"""Who is woken, and when: assistants and their schedules."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from runs import clock

NAME = RegexValidator(
    r"\A[a-z0-9][a-z0-9-]{0,62}\Z", "lower-case letters, digits and hyphens, at most 63"
)


class AssistantQuerySet(models.QuerySet["Assistant"]):
    def present(self) -> AssistantQuerySet:
        """Those that were not removed."""
        return self.filter(removed_at=None)

    def awake(self) -> AssistantQuerySet:
        """Those that may be woken by a schedule."""
        return self.present().filter(disabled_at=None)

    def disable(self, pk: int, reason: str) -> bool:
        """Stop waking it. False when it is disabled already: the first reason stands."""
        found = self.awake().filter(pk=pk)
        return bool(found.update(disabled_at=clock.now(), disabled_reason=reason))

    def enable(self, pk: int) -> bool:
        """Wake it again, its failures forgotten. False when it is enabled."""
        found = self.present().filter(pk=pk, disabled_at__isnull=False)
        return bool(found.update(disabled_at=None, disabled_reason="", failures=0, not_before=None))


class Assistant(models.Model):
    """A brief that is followed again and again, in a workspace that is its memory.

    `directory` holds `brief.md`, `workspace/`, `reports/` and the `assistant.toml` it arrived by;
    this row is what counts afterwards.
    """

    name = models.CharField(max_length=63, validators=[NAME])
    directory = models.CharField(max_length=4096)
    # assistants.belonging says what that means; nobody's: everybody's
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="assistants",
    )
    # whose own key its wakeups use: assistants.lending
    key_of = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    config = models.JSONField(default=dict)  # assistants.config.Config; holds no secret
    # what of `config` was said on the web since its file was read: assistants.security
    set_on_web = models.JSONField(default=dict)
    toml_sha256 = models.CharField(max_length=64, blank=True)  # of the file as it was last read
    created_at = models.DateTimeField(default=clock.now)
    removed_at = models.DateTimeField(null=True, blank=True)

    disabled_at = models.DateTimeField(null=True, blank=True)
    disabled_reason = models.CharField(max_length=500, blank=True)
    failures = models.PositiveIntegerField(default=0)  # in a row
    not_before = models.DateTimeField(null=True, blank=True)  # backing off, or rate limited

    objects = AssistantQuerySet.as_manager()

    class Meta:
        ordering: ClassVar[list[str]] = ["name"]
        permissions = [
            ("tell_assistant", "Can tell an assistant something"),
            ("wake_assistant", "Can wake an assistant now"),
            ("change_assistant_security", "Can change what an assistant may reach"),
            ("view_every_assistant", "Can see the assistants of everybody"),
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                name="assistant_name", fields=["name"], condition=Q(removed_at__isnull=True)
            ),
            # two of them would write over each other's memory
            models.UniqueConstraint(
                name="assistant_directory",
                fields=["directory"],
                condition=Q(removed_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ScheduleQuerySet(models.QuerySet["Schedule"]):
    def due(self, now: Any) -> ScheduleQuerySet:
        """Schedules of assistants that may be woken whose next slot has come."""
        return self.filter(
            next_at__lte=now, assistant__disabled_at=None, assistant__removed_at=None
        )

    def advance(self, pk: int, *, seen: Any, to: Any) -> bool:
        """Go on to the next slot. False when somebody else has: the slot is theirs."""
        return bool(self.filter(pk=pk, next_at=seen).update(next_at=to))


class Schedule(models.Model):
    """When an assistant is woken: every so often, or by cron, on the clock of one zone."""

    class Missed(models.TextChoices):
        SKIP = "skip"
        ONCE = "once"
        YOUNG = "once-if-younger-than"

    assistant = models.ForeignKey(Assistant, on_delete=models.CASCADE, related_name="schedules")
    every_s = models.PositiveIntegerField(null=True, blank=True)
    cron = models.CharField(max_length=200, blank=True)
    timezone = models.CharField(max_length=64, default="UTC")
    missed = models.CharField(max_length=20, choices=Missed, default=Missed.ONCE)
    missed_within_s = models.PositiveIntegerField(null=True, blank=True)
    jitter_s = models.PositiveIntegerField(default=0)
    quiet_hours = models.CharField(max_length=11, blank=True)  # "22:00-07:00", in its zone
    anchor_at = models.DateTimeField(default=clock.now)  # intervals are counted from here
    next_at = models.DateTimeField(null=True, blank=True)  # the next planned slot, without jitter

    objects = ScheduleQuerySet.as_manager()

    class Meta:
        ordering: ClassVar[list[str]] = ["pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                name="schedule_interval_or_cron",
                condition=Q(every_s__isnull=False, every_s__gt=0, cron="")
                | (Q(every_s__isnull=True) & ~Q(cron="")),
            ),
            models.CheckConstraint(
                name="schedule_young_has_an_age",
                condition=~Q(missed="once-if-younger-than")
                | Q(missed_within_s__isnull=False, missed_within_s__gt=0),
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(name="schedule_next", fields=["next_at"])
        ]

    def __str__(self) -> str:
        return self.cron or f"every {self.every_s} s"
