"""Which site user an account of this host's operating system belongs to."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models

from runs import clock


class TerminalAccount(models.Model):
    """An OS account that decides at a terminal as one site user, and nobody else's."""

    account = models.CharField(max_length=150, unique=True)
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="terminal_account"
    )
    created_at = models.DateTimeField(default=clock.now)

    class Meta:
        ordering: ClassVar[list[str]] = ["account"]

    def __str__(self) -> str:
        return self.account


def user_of(account: str) -> Any:
    """The site user an OS account is mapped to, or None."""
    found = TerminalAccount.objects.select_related("user").filter(account=account).first()
    return found.user if found and found.user.is_active else None
