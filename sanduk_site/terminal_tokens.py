"""Tokens with which people's terminals elsewhere are let in: shown once, ended from any page."""

from __future__ import annotations

import datetime as dt
import hashlib
import secrets
from typing import Any

from django.db import transaction

from runs import audit, clock
from runs.refusal import Refusal
from sanduk_site.models import TerminalToken

PREFIX = "sanduk-"
DAYS, DAYS_MAX, OPEN_MAX = 90, 365, 20
_SEEN_AGAIN = dt.timedelta(minutes=1)  # when it was used is written down so often at most


def new(user: Any, name: str, *, days: int = DAYS, may_decide: bool = False) -> str:
    """Make one; the token, which is kept nowhere.

    Args:
        name: what its owner calls the terminal.
        may_decide: let it approve and reject what their roles let them.

    Raises Refusal.
    """
    name = name.strip()
    if not name or len(name) > 80 or not name.isprintable():
        raise Refusal("the terminal needs a name of at most 80 characters, to know it again")
    if not 1 <= days <= DAYS_MAX:
        raise Refusal(f"a token is good for 1 to {DAYS_MAX} days")
    if open_ones(user).count() >= OPEN_MAX:
        raise Refusal(f"{OPEN_MAX} terminals are let in already; end one first")
    token = PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        made = TerminalToken.objects.create(
            user=user,
            name=name,
            token_sha256=_hash(token),
            may_decide=may_decide,
            expires_at=clock.now() + dt.timedelta(days=days),
        )
        audit.record(
            "token.new", _subject(user), actor=user, token=made.pk, name=name, decides=may_decide
        )
    return token


def found(token: str, address: str | None) -> TerminalToken | None:
    """The open token of somebody who is let in; None for any other. Notes that it was used."""
    if not token.startswith(PREFIX) or len(token) > 200:
        return None
    rows = TerminalToken.objects.open().select_related("user")
    here = rows.filter(token_sha256=_hash(token), user__is_active=True, user__is_staff=True).first()
    if here is None:
        return None
    now = clock.now()
    if here.used_at is None or now - here.used_at > _SEEN_AGAIN or here.address != address:
        TerminalToken.objects.filter(pk=here.pk).update(used_at=now, address=address)
    return here


def open_ones(user: Any) -> Any:
    return TerminalToken.objects.open().filter(user=user)


def end(token: TerminalToken, *, actor: Any) -> bool:
    """Let that terminal in no more. False when it was so already."""
    with transaction.atomic():
        rows = TerminalToken.objects.filter(pk=token.pk, ended_at=None)
        if not rows.update(ended_at=clock.now(), ended_by=actor.get_username()):
            return False
        audit.record("token.end", _subject(token.user), actor=actor, token=token.pk)
    return True


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _subject(user: Any) -> str:
    return f"user:{user.get_username()}"[:100]
