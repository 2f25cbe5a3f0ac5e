"""The page behind a one-time link: the first administrator, or a person's new password."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth import get_user_model, login
from django.contrib.auth.password_validation import (
    password_validators_help_text_html,
    validate_password,
)
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from runs import audit
from runs.refusal import Refusal
from sanduk_site import first_admin, links

_BACKEND = "django.contrib.auth.backends.ModelBackend"


class PasswordForm(forms.Form):
    """A new password, typed twice."""

    password = forms.CharField(
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=password_validators_help_text_html,
    )
    again = forms.CharField(
        label="Password again",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def __init__(self, *args: Any, user: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        first, second = found.get("password"), found.get("again")
        if first and second and first != second:
            self.add_error("again", "The two passwords are not the same.")
        elif first:
            user = self._user or get_user_model()(username=found.get("username", ""))
            try:
                validate_password(first, user)
            except ValidationError as exc:
                self.add_error("password", exc)
        return found


class AccountForm(PasswordForm):
    """The first administrator's name and password."""

    username = forms.CharField(
        label="Your name here",
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autofocus": True}),
    )
    field_order = ("username", "password", "again")

    def clean_username(self) -> str:
        user = get_user_model()(username=self.cleaned_data["username"])
        user.clean_fields(exclude=["password"])
        return str(user.username)


@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def setup(request: HttpRequest, token: str) -> HttpResponse:
    """Show the form of a good link; a POST that fits uses the link up and signs in."""
    link = links.found(token)
    if link is None:
        return _shown(request, None, "This link was used already, or has expired", status=410)
    is_first = link.user is None
    data = request.POST if request.method == "POST" else None
    form = AccountForm(data) if is_first else PasswordForm(data, user=link.user)
    if data is not None and form.is_valid():
        try:
            user = _first(token, form) if is_first else _again(token, link.user, form)
        except ValidationError as exc:
            form.add_error("username" if is_first else "password", exc.messages)
        except Refusal as exc:
            return _shown(request, None, str(exc), status=409)
        else:
            login(request, user, backend=_BACKEND)
            return redirect("first-run" if is_first else "home")
    title = "The first administrator" if is_first else f"A password for {link.user}"
    return _shown(request, form, title, whose=link.user.get_username() if link.user else "")


def _first(token: str, form: PasswordForm) -> Any:
    given = form.cleaned_data
    return first_admin.make(given["username"], given["password"], token=token)


def _again(token: str, user: Any, form: PasswordForm) -> Any:
    with transaction.atomic():
        first_admin.use(token)
        user.set_password(form.cleaned_data["password"])
        user.save(update_fields=["password"])
        audit.record("user.password", f"user:{user.get_username()}"[:100], actor=user)
    return user


def _shown(
    request: HttpRequest,
    form: forms.Form | None,
    title: str,
    *,
    status: int = 200,
    whose: str = "",
) -> HttpResponse:
    frame = {**admin.site.each_context(request), "is_nav_sidebar_enabled": False}
    context = {**frame, "title": title, "form": form, "whose": whose}
    return render(request, "site/first_run/setup.html", context, status=status)
