"""What an assistant is told, and what it wants to say."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from assistants.models.assistant import Assistant
from assistants.models.wakeup import Wakeup
from runs import clock


class InboxQuerySet(models.QuerySet["InboxMessage"]):
    def waiting(self) -> InboxQuerySet:
        return self.filter(consumed_at=None, withdrawn_at=None)

    def consume(self, wakeup: Wakeup) -> int:
        """Mark what this wakeup was given, and that is still waiting, as read."""
        return self.waiting().filter(given_to=wakeup).update(
            consumed_at=clock.now(), consumed_by=wakeup
        )  # fmt: skip

    def withdraw(self, pk: int) -> bool:
        """Take a message back. False when it was read already, or taken back."""
        return bool(self.waiting().filter(pk=pk).update(withdrawn_at=clock.now()))


class InboxMessage(models.Model):
    """One thing an assistant is told. Only a wakeup that succeeds consumes it."""

    assistant = models.ForeignKey(Assistant, on_delete=models.CASCADE, related_name="inbox")
    body = models.TextField()
    source = models.CharField(max_length=60, blank=True)  # where it came from, as "terminal"
    source_id = models.CharField(max_length=200, blank=True)  # the same one twice is one message
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    account = models.CharField(max_length=150, blank=True)  # the OS account at a terminal
    created_at = models.DateTimeField(default=clock.now)
    given_to = models.ManyToManyField(Wakeup, blank=True, related_name="messages")
    consumed_at = models.DateTimeField(null=True, blank=True)
    consumed_by = models.ForeignKey(
        Wakeup, null=True, blank=True, on_delete=models.SET_NULL, related_name="consumed"
    )
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    objects = InboxQuerySet.as_manager()

    class Meta:
        ordering: ClassVar[list[str]] = ["created_at", "pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                name="inbox_source_id_once",
                fields=["assistant", "source", "source_id"],
                condition=~Q(source_id=""),
            ),
            models.CheckConstraint(
                name="inbox_read_or_withdrawn",
                condition=Q(consumed_at__isnull=True) | Q(withdrawn_at__isnull=True),
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                name="inbox_waiting",
                fields=["assistant"],
                condition=Q(consumed_at__isnull=True, withdrawn_at__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return f"message {self.pk} to {self.assistant_id}"


class OutboxQuerySet(models.QuerySet["OutboxItem"]):
    """One way only: pending -> approved | rejected | expired; approved -> delivered."""

    def decide(self, pk: int, to: str, **facts: Any) -> bool:
        """Leave `pending`. False when it has been left."""
        found = self.filter(pk=pk, state=OutboxItem.State.PENDING)
        return bool(found.update(state=to, decided_at=clock.now(), **facts))

    def mark_delivered(self, pk: int) -> bool:
        found = self.filter(pk=pk, state=OutboxItem.State.APPROVED)
        return bool(found.update(state=OutboxItem.State.DELIVERED, delivered_at=clock.now()))


class OutboxItem(models.Model):
    """What one wakeup wants to say, written as that wakeup ends. Its text never changes."""

    class State(models.TextChoices):
        PENDING = "pending"
        APPROVED = "approved"
        REJECTED = "rejected"
        EXPIRED = "expired"
        DELIVERED = "delivered"

    assistant = models.ForeignKey(Assistant, on_delete=models.PROTECT, related_name="outbox")
    wakeup = models.OneToOneField(
        Wakeup, null=True, on_delete=models.SET_NULL, related_name="outbox_item"
    )
    body = models.TextField()  # hostile
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=clock.now)
    state = models.CharField(max_length=9, choices=State, default=State.PENDING)
    approvals = models.PositiveSmallIntegerField(default=1)
    exclude_author = models.BooleanField(default=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    reminded_at = models.DateTimeField(null=True, blank=True)  # that it waits was told, once
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=300, blank=True)
    reason = models.TextField(blank=True)
    delivered_at = models.DateTimeField(null=True, blank=True)
    secrets_found = models.JSONField(default=list)  # runs.secret_scan.Finding as plain data
    unreviewed_memory = models.BooleanField(default=False)

    objects = OutboxQuerySet.as_manager()

    class Meta:
        ordering: ClassVar[list[str]] = ["-created_at", "-pk"]
        permissions = [("decide_outboxitem", "Can approve and reject what assistants want to say")]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                name="outbox_decided_when",
                condition=Q(state="pending", decided_at__isnull=True)
                | (~Q(state="pending") & Q(decided_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="outbox_delivered_when",
                condition=Q(state="delivered", delivered_at__isnull=False)
                | (~Q(state="delivered") & Q(delivered_at__isnull=True)),
            ),
            models.CheckConstraint(name="outbox_some_approval", condition=Q(approvals__gte=1)),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                name="outbox_open",
                fields=["state", "created_at"],
                condition=Q(state__in=["pending", "approved"]),
            )
        ]

    def __str__(self) -> str:
        return f"item {self.pk} of {self.assistant_id}"
