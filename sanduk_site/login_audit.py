"""Signing in, and failing to, in the audit: who and how, never a password or a name of nobody."""

from __future__ import annotations

import datetime as dt
from typing import Any

from axes.signals import user_locked_out
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from runs import audit, clock
from runs.models import AuditEvent

FAILED, LOCKED = "login.failed", "login.locked"
HOURLY_MAX = 100  # of both in an hour, from everywhere: guessers fill no disk with the chain
NOBODY = "user:(unknown)"  # what was typed may be a password in the wrong field
_HOW = {"login": "password", "setup": "link"}


@receiver(user_logged_in)
def _signed_in(sender: Any, request: HttpRequest, user: Any, **_: Any) -> None:
    if request.method is None:  # no browser's: a test client signs somebody in without a request
        return
    audit.record("login", _subject(user.get_username()), actor=user, how=_how(request),
                 address=_address(request))  # fmt: skip


@receiver(user_login_failed)
def _failed(
    sender: Any, credentials: Any = None, request: HttpRequest | None = None, **_: Any
) -> None:
    _once(FAILED, (credentials or {}).get("username"), request, most=settings.AXES_FAILURE_LIMIT)


@receiver(user_locked_out)
def _locked(
    sender: Any, request: HttpRequest | None = None, username: str | None = None, **_: Any
) -> None:
    _once(LOCKED, username, request, most=1)


def _once(action: str, name: Any, request: HttpRequest | None, *, most: int) -> None:
    """Write down so many of one subject and address while a lock lasts, and of all in an hour."""
    known = get_user_model().objects.filter(username=str(name or "")[:150].replace("\0", ""))
    subject = _subject(str(name)) if known.exists() else NOBODY
    address, now = _address(request), clock.now()
    recent = AuditEvent.objects.filter(at__gt=now - dt.timedelta(hours=1))
    if recent.filter(action__in=(FAILED, LOCKED)).count() >= HOURLY_MAX:
        return
    same = recent.filter(action=action, subject=subject, at__gt=now - settings.AXES_COOLOFF_TIME)
    if sum(event.detail.get("address") == address for event in same[:HOURLY_MAX]) < most:
        audit.record_policy(action, subject, how=_how(request), address=address)


def _how(request: HttpRequest | None) -> str:
    match = request.resolver_match if request is not None else None
    return _HOW.get(match.url_name or "", "password once more") if match else "password"


def _address(request: HttpRequest | None) -> str:
    return str(request.META.get("REMOTE_ADDR") or "") if request is not None else ""


def _subject(name: str) -> str:
    return f"user:{name}"[:100]
