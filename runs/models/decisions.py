"""Who decided what, and the append-only record of everything a person changed."""

from __future__ import annotations

import datetime as dt
from typing import Any, ClassVar, NoReturn

from django.conf import settings
from django.db import IntegrityError, models, transaction

from runs import audit_head, clock

_APPEND_TRIES = 50  # others that may append first, each time we try


class AppendOnlyQuerySet(models.QuerySet[Any]):
    """The bulk ways to change or delete rows, closed as well."""

    def update(self, **kwargs: Any) -> NoReturn:
        raise TypeError(f"a {self.model._meta.verbose_name} is never changed")

    def bulk_update(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"a {self.model._meta.verbose_name} is never changed")

    def delete(self) -> NoReturn:
        raise TypeError(f"a {self.model._meta.verbose_name} is never deleted")


class AppendOnlyManager(models.Manager[Any]):
    """Reaches rows only through `AppendOnlyQuerySet`."""

    def get_queryset(self) -> AppendOnlyQuerySet:
        return AppendOnlyQuerySet(self.model, using=self._db)


class AppendOnly(models.Model):
    """A row that is written once. There is no way to change or delete one through the ORM."""

    objects = AppendOnlyManager()

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError(f"a {self._meta.verbose_name} is never changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"a {self._meta.verbose_name} is never deleted")


class Decision(AppendOnly):
    """One person's verdict on one exact content.

    `subject` names what was decided on, as "outbox:17" or "change:4"; `digest` is the sha256 of
    the bytes that were shown. `actor` is null for an OS account that is mapped to no site user.
    """

    class Verdict(models.TextChoices):
        APPROVE = "approve"
        REJECT = "reject"

    subject = models.CharField(max_length=100)
    digest = models.CharField(max_length=64)
    verdict = models.CharField(max_length=7, choices=Verdict)
    reason = models.TextField(blank=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    account = models.CharField(max_length=150, blank=True)  # the OS account, or "policy"
    via = models.CharField(max_length=20)  # web | terminal | policy
    at = models.DateTimeField(default=clock.now)

    class Meta:
        ordering: ClassVar[list[str]] = ["at", "pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                name="decision_once_per_person",
                fields=["subject", "digest", "actor"],
                condition=models.Q(actor__isnull=False),
            )
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(name="decision_subject", fields=["subject"])
        ]

    def __str__(self) -> str:
        return f"{self.verdict} of {self.subject}"


class AuditEvent(AppendOnly):
    """One thing a person, a command or the system did: who, when, what, to what, why.

    Each carries the hash of the one before it, so that none can be changed, left out or put in
    between unseen; the last hash is kept outside the database too (`runs.audit_head`).
    """

    number = models.PositiveBigIntegerField(unique=True, editable=False)  # 1, 2, 3, no gaps
    previous = models.CharField(max_length=64, blank=True, editable=False)  # the hash before
    sha256 = models.CharField(max_length=64, editable=False)
    at = models.DateTimeField(default=clock.now)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    account = models.CharField(max_length=150, blank=True)
    action = models.CharField(max_length=60)  # "run.stop", "outbox.approve"
    subject = models.CharField(max_length=100, blank=True)
    detail = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar[list[str]] = ["-at", "-pk"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(name="auditevent_subject", fields=["subject"]),
            models.Index(name="auditevent_newest", fields=["-at"]),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.subject}".strip()

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Append it to the chain. Another process may append first: then it follows that one."""
        if not self._state.adding:
            raise TypeError(f"a {self._meta.verbose_name} is never changed")
        with transaction.atomic():
            for left in reversed(range(_APPEND_TRIES)):
                self._follow(AuditEvent.objects.order_by("-number").first())
                try:
                    with transaction.atomic():
                        super().save(*args, **kwargs)
                    break
                except IntegrityError:
                    taken = AuditEvent.objects.filter(number=self.number).exists()
                    if not (taken and left):
                        raise
            transaction.on_commit(self._keep_outside, robust=True)

    def facts(self) -> dict[str, Any]:
        """What its hash covers, besides its place in the chain."""
        return {
            "at": self.at.astimezone(dt.UTC).isoformat(timespec="microseconds"),
            "actor": self.actor_id,
            "account": self.account,
            "action": self.action,
            "subject": self.subject,
            "detail": self.detail,
        }

    def _follow(self, last: AuditEvent | None) -> None:
        self.number = last.number + 1 if last else 1
        self.previous = last.sha256 if last else ""
        self.sha256 = audit_head.chained(self.number, self.previous, self.facts())

    def _keep_outside(self) -> None:
        def is_ours(head: audit_head.Head) -> bool:
            found = AuditEvent.objects.filter(number=head.number, sha256=head.sha256)
            return bool(found.exists())

        audit_head.keep(audit_head.Head(self.number, self.sha256), is_ours)
