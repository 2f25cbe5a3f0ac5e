"""What the site itself keeps: one-time links, who is signed in from where, and terminals."""

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


class TerminalTokenQuerySet(models.QuerySet["TerminalToken"]):
    def open(self) -> TerminalTokenQuerySet:
        return self.filter(ended_at=None, expires_at__gt=clock.now())


class TerminalToken(models.Model):
    """What lets one person's terminal in elsewhere, instead of a password; only its hash is kept.

    It adds nothing to what they may do: their roles are asked each time, as on the pages.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="terminal_tokens"
    )
    name = models.CharField(max_length=80)  # of the terminal, for its owner to recognise
    token_sha256 = models.CharField(max_length=64, unique=True)
    may_decide = models.BooleanField(default=False)  # approve and reject, where their roles do
    created_at = models.DateTimeField(default=clock.now)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    address = models.GenericIPAddressField(null=True, blank=True)  # from where, then
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=150, blank=True)

    objects = TerminalTokenQuerySet.as_manager()

    class Meta:
        ordering: ClassVar[list[str]] = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return f"token {self.pk}"
