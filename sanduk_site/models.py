"""What the site itself keeps: one-time links, and who is signed in from where."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from runs import clock


class OneTimeLinkQuerySet(models.QuerySet["OneTimeLink"]):
    def open(self) -> OneTimeLinkQuerySet:
        return self.filter(used_at=None, expires_at__gt=clock.now())

    def use(self, pk: int) -> bool:
        """Take it, once. False when it was used or has expired."""
        return bool(self.open().filter(pk=pk).update(used_at=clock.now()))


class OneTimeLink(models.Model):
    """Whoever has the token may set one password, once: the first administrator's, or `user`'s."""

    token_sha256 = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    created_at = models.DateTimeField(default=clock.now)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    objects = OneTimeLinkQuerySet.as_manager()

    def __str__(self) -> str:
        return f"link {self.pk}"


class LoginSession(models.Model):
    """One browser somebody is, or was, signed in with; `sanduk_site.sessions` ends it."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="login_sessions"
    )
    began_at = models.DateTimeField(default=clock.now)
    address = models.GenericIPAddressField(null=True, blank=True)
    browser = models.CharField(max_length=200, blank=True)  # what it says of itself: hostile
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["-began_at", "-pk"]
        permissions = [("end_loginsession", "Can end the sessions of others")]

    def __str__(self) -> str:
        return f"{self.user_id} since {self.began_at:%Y-%m-%d %H:%M}"
