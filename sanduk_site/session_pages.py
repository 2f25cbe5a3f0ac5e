"""Where one is signed in, and signing out there; of everybody, for administrators."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST, require_safe

from runs import audit, clock
from runs.pages import for_those_who_may, page
from runs.refusal import Refusal
from runs.visible import visible
from sanduk_site import sessions as signed_in
from sanduk_site import terminal_tokens
from sanduk_site.models import LoginSession, TerminalToken
from sanduk_site.sudo import fresh_login_required

SHOWN = 200


def _open(user: Any) -> QuerySet[LoginSession]:
    """The browsers this person may see signed in: their own, or everybody's."""
    began = clock.now() - dt.timedelta(seconds=settings.SESSION_COOKIE_AGE)
    found = LoginSession.objects.filter(ended_at=None, began_at__gt=began).select_related("user")
    if user.has_perm("sanduk_site.view_loginsession"):
        return found
    return found.filter(user=user)


def _terminals(user: Any) -> QuerySet[TerminalToken]:
    """The terminals this person may see let in: their own, or everybody's."""
    found = TerminalToken.objects.open().select_related("user")
    if user.has_perm("sanduk_site.view_loginsession"):
        return found
    return found.filter(user=user)


@require_safe
@for_those_who_may()
def sessions(request: HttpRequest) -> HttpResponse:
    """Every browser that is signed in, newest first."""
    user: Any = request.user
    this: int = request.session.get(signed_in.KEY) or 0
    context = {
        "sessions": _open(user)[:SHOWN],
        "this": this,
        "has_others": _open(user).filter(user=user).exclude(pk=this).exists(),
        "terminals": _terminals(user)[:SHOWN],
        "days": terminal_tokens.DAYS,
        "days_max": terminal_tokens.DAYS_MAX,
        "may_end_all": user.has_perm("sanduk_site.end_loginsession"),
    }
    return page(request, "site/sessions.html", context, title="Signed in", section="")


def _that_may_be_ended(user: Any, rows: QuerySet[Any], pk: int) -> Any:
    """One's own, or for who may end the sessions of others, any."""
    found = get_object_or_404(rows, pk=pk)
    if found.user != user and not user.has_perm("sanduk_site.end_loginsession"):
        raise PermissionDenied
    return found


@require_POST
@for_those_who_may()
def end(request: HttpRequest, pk: int) -> HttpResponse:
    """Sign one browser out."""
    user: Any = request.user
    found = _that_may_be_ended(user, _open(user), pk)
    if signed_in.end(found.pk, by=user.get_username()):
        audit.record("session.end", f"user:{found.user}"[:100], actor=user, session=found.pk)
        messages.success(request, "Signed out there.")
    return redirect("sessions")


@require_POST
@for_those_who_may()
def end_others(request: HttpRequest) -> HttpResponse:
    """Sign this person out everywhere but here; nobody else, whoever asks."""
    user: Any = request.user
    if many := signed_in.end_others(user, request.session.get(signed_in.KEY) or 0):
        audit.record("session.end", f"user:{user}"[:100], actor=user, others=many)
        browsers = "1 other browser" if many == 1 else f"{many} other browsers"
        messages.success(request, f"Signed out in {browsers}.")
    else:
        messages.info(request, "You were signed in nowhere else.")
    return redirect("sessions")


@require_POST
@for_those_who_may()
@fresh_login_required
def new_terminal(request: HttpRequest) -> HttpResponse:
    """Let a terminal in: its token is on this page, and nowhere again."""
    form, user = request.POST, request.user
    name, days = form.get("name", ""), form.get("days", "")
    try:
        if not (days.isascii() and days.isdigit() and len(days) < 5):
            raise Refusal("say for how many days it is let in")
        token = terminal_tokens.new(user, name, days=int(days), may_decide="may_decide" in form)
    except Refusal as exc:
        messages.error(request, f"Not done: {visible(str(exc))}")
        return redirect("sessions")
    context = {"token": token, "name": name.strip(), "address": settings.SANDUK_BASE_URL}
    return page(request, "site/terminal.html", context, title="A terminal is let in", section="")


@require_POST
@for_those_who_may()
def end_terminal(request: HttpRequest, pk: int) -> HttpResponse:
    """Let one terminal in no more."""
    user: Any = request.user
    found = _that_may_be_ended(user, _terminals(user), pk)
    if terminal_tokens.end(found, actor=user):
        messages.success(request, "That terminal is let in no more.")
    return redirect("sessions")
