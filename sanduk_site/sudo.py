"""The password once more before a dangerous setting: a screen left open is not consent."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from django.contrib.auth import authenticate
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_post_parameters

from runs import clock
from runs.pages import page
from sanduk_site.sessions import FRESH_KEY

FRESH_S = 600.0
PASSWORD, GO_ON = "sudo_password", "sudo_go_on"  # fields of the form that asks
_NEVER_SENT_BACK = (PASSWORD, GO_ON, "csrfmiddlewaretoken")
_SECRET = ("password", "key", "secret", "token")

View = Callable[..., HttpResponse]


def is_fresh(request: HttpRequest) -> bool:
    """Whether this browser gave the password within the last ten minutes."""
    at = request.session.get(FRESH_KEY)
    return isinstance(at, float) and 0 <= clock.now().timestamp() - at < FRESH_S


def fresh_login_required(view: View) -> View:
    """Ask for the password first when the last time is too long ago.

    What was typed into the form that was posted is kept, and goes on with the password; only
    passwords, keys and files must be given again. Goes inside of the check of rights.
    """

    @sensitive_post_parameters()
    @functools.wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if PASSWORD in request.POST:
            if not _confirmed(request):
                return _asked(request, "That was not your password.")
            if request.POST.get(GO_ON) != "post":
                return redirect(request.get_full_path())
            given = request.POST.copy()
            for field in _NEVER_SENT_BACK:
                given.pop(field, None)
            request.POST = given  # type: ignore[assignment]
        if not is_fresh(request):
            return _asked(request)
        return view(request, *args, **kwargs)

    return checked


def is_own_password(request: HttpRequest, password: str) -> bool:
    """Whether it is that of who asks. Wrong ones count towards the lock of the login."""
    user = request.user
    found = authenticate(request, username=user.get_username(), password=password)
    return found is not None and found.pk == user.pk


def _confirmed(request: HttpRequest) -> bool:
    if not is_own_password(request, request.POST.get(PASSWORD, "")):
        return False
    request.session[FRESH_KEY] = clock.now().timestamp()
    return True


def _asked(request: HttpRequest, problem: str = "") -> HttpResponse:
    goes_on = request.method == "POST" and request.POST.get(GO_ON, "post") == "post"
    kept = [
        (name, value)
        for name, values in request.POST.lists()
        for value in values
        if goes_on
        and name not in _NEVER_SENT_BACK
        and not any(word in name.lower() for word in _SECRET)
    ]
    context = {
        "problem": problem,
        "kept": kept,
        "go_on": "post" if goes_on else "get",
        "password_field": PASSWORD,
        "go_on_field": GO_ON,
    }
    return page(
        request, "site/confirm.html", context, title="Your password, please", section="", status=403
    )
