"""Where approved items go, and each attempt to bring one there."""

from __future__ import annotations

import datetime as dt
import secrets
from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from assistants.models.assistant import NAME, Assistant
from assistants.models.mail import OutboxItem
from runs import clock


def new_key() -> str:
    return secrets.token_hex(16)


class Destination(models.Model):
    """A place on this host's own list. No agent can name one."""

    class Kind(models.TextChoices):
        COMMAND = "command"
        WEBHOOK = "webhook"
        EMAIL = "email"
        FILE = "file"
        APPRISE = "apprise"

    name = models.CharField(max_length=63, validators=[NAME])
    kind = models.CharField(max_length=8, choices=Kind)
    config = models.JSONField(default=dict)  # holds no secret: those are in the store, by name
    timeout_s = models.PositiveIntegerField(default=60)
    # it is told of items that wait for a decision for so long; null: it is not
    remind_after_s = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=clock.now)
    removed_at = models.DateTimeField(null=True, blank=True)
    assistants = models.ManyToManyField(Assistant, blank=True, related_name="destinations")

    class Meta:
        ordering: ClassVar[list[str]] = ["name"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                name="destination_name", fields=["name"], condition=Q(removed_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return self.name


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    """waiting -> sending -> sent | failed | unknown; failed -> sending again, or given up."""

    def claim(self, pk: int, owner: str, lease_s: float) -> bool:
        """Begin to send. False: it is somebody else's, not due, or over."""
        now = clock.now()
        due = self.filter(
            pk=pk, state__in=[Delivery.State.WAITING, Delivery.State.FAILED], next_at__lte=now
        )
        return bool(
            due.update(
                state=Delivery.State.SENDING,
                attempts=models.F("attempts") + 1,
                started_at=now,
                lease_owner=owner,
                lease_until=now + dt.timedelta(seconds=lease_s),
            )
        )

    def finish(self, pk: int, owner: str, state: str, **facts: Any) -> bool:
        """Say how an attempt of this process ended."""
        found = self.filter(pk=pk, state=Delivery.State.SENDING, lease_owner=owner)
        return bool(
            found.update(
                state=state, ended_at=clock.now(), lease_owner="", lease_until=None, **facts
            )
        )

    def mark_unknown(self, delivery: Delivery, reason: str) -> bool:
        """Its process is gone in the middle of sending: only a person can say what arrived."""
        found = self.filter(
            pk=delivery.pk, state=Delivery.State.SENDING, lease_owner=delivery.lease_owner
        )
        return bool(
            found.update(
                state=Delivery.State.UNKNOWN,
                error=reason,
                ended_at=clock.now(),
                lease_owner="",
                lease_until=None,
            )
        )


class Delivery(models.Model):
    """One item on its way to one destination. `key` is what the receiver tells doubles by."""

    class State(models.TextChoices):
        WAITING = "waiting"
        SENDING = "sending"
        SENT = "sent"
        FAILED = "failed"  # to be tried again at next_at
        GIVEN_UP = "given_up"
        UNKNOWN = "unknown"

    item = models.ForeignKey(OutboxItem, on_delete=models.PROTECT, related_name="deliveries")
    destination = models.ForeignKey(
        Destination, on_delete=models.PROTECT, related_name="deliveries"
    )
    number = models.PositiveSmallIntegerField(default=1)  # 2: delivered again on purpose
    key = models.CharField(max_length=32, unique=True, default=new_key)
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField(default=clock.now)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    lease_owner = models.CharField(max_length=200, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    output = models.TextField(blank=True)  # what the receiver said: hostile, capped
    error = models.CharField(max_length=500, blank=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        ordering: ClassVar[list[str]] = ["pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(name="delivery_once", fields=["item", "destination", "number"]),
            models.CheckConstraint(
                name="delivery_lease_only_while_sending",
                condition=Q(lease_until__isnull=True) | Q(state="sending"),
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                name="delivery_due",
                fields=["next_at"],
                condition=Q(state__in=["waiting", "failed"]),
            )
        ]

    def __str__(self) -> str:
        return f"item {self.item_id} to {self.destination_id}"
