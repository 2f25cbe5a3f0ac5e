"""One-time links: the first administrator's, and those with which people set their passwords."""

from __future__ import annotations

import datetime as dt
import hashlib
import secrets
from typing import Any

from django.db import transaction

from runs import clock
from sanduk_site.models import OneTimeLink

LASTS = dt.timedelta(hours=24)


def new(user: Any = None) -> str:
    """A new token, which ends every earlier one for the same person.

    Args:
        user: whose password it sets; None for the administrator that there is not yet.
    """
    token = secrets.token_urlsafe(32)
    now = clock.now()
    with transaction.atomic():
        OneTimeLink.objects.open().filter(user=user).update(expires_at=now)
        OneTimeLink.objects.create(
            token_sha256=_digest(token), user=user, created_at=now, expires_at=now + LASTS
        )
    return token


def address_of(token: str, base_url: str) -> str:
    return f"{base_url}/setup/{token}"


def found(token: str) -> OneTimeLink | None:
    """The link that is still good for this token."""
    links = OneTimeLink.objects.open().select_related("user")
    return links.filter(token_sha256=_digest(token)).first()


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
