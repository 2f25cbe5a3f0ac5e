"""Who is signed in with which browser, and how one of them is signed out from afar."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import logout
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.db import transaction
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from runs import audit, clock

KEY, FRESH_KEY = "login_session", "fresh_at"  # in Django's session, which changes its own key
_BROWSER_MAX = 200


@receiver(user_logged_in)
def _begin(sender: Any, request: HttpRequest, user: Any, **_: Any) -> None:
    from sanduk_site.models import LoginSession

    began = LoginSession.objects.create(
        user=user,
        address=request.META.get("REMOTE_ADDR") or None,
        browser=request.META.get("HTTP_USER_AGENT", "")[:_BROWSER_MAX].replace("\0", ""),
    )
    request.session[KEY] = began.pk
    request.session[FRESH_KEY] = clock.now().timestamp()


@receiver(user_logged_out)
def _end(sender: Any, request: HttpRequest, user: Any, **_: Any) -> None:
    if user is None or not (pk := request.session.get(KEY)):
        return
    is_first = end(pk, by=user.get_username())
    if is_first and request.method is not None:  # else it was ended from afar, and said then
        audit.record("logout", f"user:{user.get_username()}"[:100], actor=user, session=pk)


def end(pk: int, *, by: str) -> bool:
    """Sign one browser out: its next request finds itself signed out. False when it was."""
    from sanduk_site.models import LoginSession

    open_ones = LoginSession.objects.filter(pk=pk, ended_at=None)
    return bool(open_ones.update(ended_at=clock.now(), ended_by=by))


def end_others(user: Any, pk: int) -> int:
    """Sign every browser of a person out but the one of this row; how many were signed in."""
    from sanduk_site.models import LoginSession

    others = LoginSession.objects.filter(user=user, ended_at=None).exclude(pk=pk)
    return others.update(ended_at=clock.now(), ended_by=user.get_username())


class EndedSessions(MiddlewareMixin):
    """Signs out whoever's session was ended elsewhere."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        from sanduk_site.models import LoginSession

        pk = request.session.get(KEY)
        if pk and not LoginSession.objects.filter(pk=pk, ended_at=None).exists():
            with transaction.atomic():
                logout(request)
        return None
