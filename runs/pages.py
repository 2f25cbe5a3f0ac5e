"""Pages inside the admin's frame: who may open one, and how it is rendered."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.contrib import admin, messages
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from runs import typed
from runs.refusal import Refusal
from runs.visible import visible

View = Callable[..., HttpResponse]
Crumb = tuple[str, str]  # address ("" for the page itself), word


def for_those_who_may(*permissions: str) -> Callable[[View], View]:
    """Let in whoever is signed in and holds every one of `permissions`.

    Others are sent to log in, and those who are lack a right get a 403.
    """

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not admin.site.has_permission(request):
                return to_login(request)
            if not request.user.has_perms(permissions):
                raise PermissionDenied
            return view(request, *args, **kwargs)

        return never_cache(checked)

    return decorate


def to_login(request: HttpRequest) -> HttpResponse:
    """To the admin's login, and back to the page; after a form, to the page that held it.

    What was typed into the form goes along.
    """
    back = request.get_full_path()
    if request.method not in ("GET", "HEAD"):
        came = urlsplit(request.headers.get("Referer", ""))
        back = came.path if came.netloc == request.get_host() else reverse("home")
        if (again := typed.ask_again(request, back)) is not None:
            return again
    return redirect_to_login(back, reverse("admin:login"))


def attempt(request: HttpRequest, act: Callable[[], str]) -> bool:
    """Do what a person asked for, and tell them how it went. False: it was refused.

    Args:
        act: does it and returns what to say; raises Refusal when it may not be done.
    """
    try:
        said = act()
    except Refusal as exc:
        messages.error(request, f"Not done: {visible(str(exc))}")
        return False
    messages.success(request, said)
    return True


def page(
    request: HttpRequest,
    template: str,
    context: dict[str, Any],
    *,
    title: str,
    section: str,
    crumbs: Sequence[Crumb] = (),
    status: int = 200,
) -> HttpResponse:
    """One page in the frame.

    Args:
        title: of the window and of the page; what is hostile in it was made visible.
        section: which part of the navigation is marked.
        crumbs: the way here from Home.
    """
    frame = {
        **admin.site.each_context(request),
        "is_nav_sidebar_enabled": False,
        "title": title,
        "section": section,
        "crumbs": crumbs,
    }
    return render(request, template, {**frame, **context}, status=status)
