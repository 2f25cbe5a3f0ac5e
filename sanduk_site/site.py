"""The admin site, with the navigation and the count of what waits in its frame."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.contrib.admin import AdminSite
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.http import HttpRequest
from django.shortcuts import redirect
from django.urls import NoReverseMatch, reverse
from django.utils.functional import SimpleLazyObject
from django.utils.http import url_has_allowed_host_and_scheme

from sanduk_site import waiting

# name, address, word, the right that is needed
_SECTIONS = (
    ("runs", "admin:runs_run_changelist", "Runs", "runs.view_run"),
    ("assistants", "assistants", "Assistants", "assistants.view_assistant"),
    ("outbox", "outbox", "Outbox", "assistants.view_outboxitem"),
    ("changes", "changes", "Changes", "changes.view_change"),
    ("spend", "spend", "Spend", "runs.view_run"),
    ("images", "images", "Recipes", "runs.view_run"),
    ("system", "system", "System", "runs.view_run"),
    ("people", "admin:auth_user_changelist", "People", "auth.view_user"),
)


# lists of the admin that the navigation leads to
_LISTS = {"runs_run_changelist": "runs", "auth_user_changelist": "people"}


class SandukSite(AdminSite):
    site_header = site_title = "sanduk"
    site_url = None
    enable_nav_sidebar = False  # the lists need the width
    index_title = "Administration"

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context = super().each_context(request)
        match = request.resolver_match
        if not context["has_permission"]:
            return context
        listed = match.url_name if match is not None else None
        return {
            **context,
            "sections": _sections(request),
            "section": _LISTS.get(listed or "", "admin"),
            "waiting_count": SimpleLazyObject(lambda: waiting.count_for(request.user)),
        }

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """To Home, where nobody said where to; with what was typed, back to where that was."""
        # its forms cannot be imported before the models are there
        from runs import typed

        if request.method == "POST" and typed.TYPED in request.POST:
            return typed.SignInAgain.as_view()(request)
        self.login_form = typed.LoginForm
        more = dict(extra_context or {})
        if request.method in ("GET", "HEAD") and self.has_permission(request):
            return redirect(_wanted(request) or "home")
        if REDIRECT_FIELD_NAME not in request.GET and REDIRECT_FIELD_NAME not in request.POST:
            more[REDIRECT_FIELD_NAME] = reverse("home")
        return super().login(request, more)

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        # its forms cannot be imported before the models are there
        from sanduk_site.passwords import OwnPassword

        return OwnPassword.as_view(
            template_name="site/password.html",
            success_url=reverse("admin:password_change_done", current_app=self.name),
            extra_context={**self.each_context(request), **(extra_context or {})},
        )(request)


def _wanted(request: HttpRequest) -> str:
    """The page of ours that the login was to lead to; "" for none, or one elsewhere."""
    address = request.GET.get(REDIRECT_FIELD_NAME, "")
    own = {request.get_host()}
    is_ours = url_has_allowed_host_and_scheme(address, own, require_https=request.is_secure())
    leads_back = urlsplit(address).path == request.path
    return address if is_ours and not leads_back else ""


def _sections(request: HttpRequest) -> list[tuple[str, str, str]]:
    """Name, address and word of each part this person may see."""
    found = []
    for name, view, word, permission in _SECTIONS:
        if not request.user.has_perm(permission):
            continue
        try:
            found.append((name, reverse(view), word))
        except NoReverseMatch:
            continue
    return found
