"""Changing one's own password: the old one is guessed no more often there than at the login."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.forms import AdminPasswordChangeForm
from django.contrib.auth.views import PasswordChangeView
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse

from runs import audit
from sanduk_site import sudo


class OwnPasswordForm(AdminPasswordChangeForm):
    """Args:
    request: whose failures are counted, by name and address as at the login.
    """

    def __init__(self, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._request = request

    def clean_old_password(self) -> str:
        old: str = self.cleaned_data["old_password"]
        # while the name is locked no password is right, and the answer says until when
        if not sudo.is_own_password(self._request, old):
            raise ValidationError(
                self.error_messages["password_incorrect"], code="password_incorrect"
            )
        return old


class OwnPassword(PasswordChangeView):
    form_class = OwnPasswordForm

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "request": self.request}

    def form_valid(self, form: Any) -> HttpResponse:
        with transaction.atomic():
            answer = super().form_valid(form)
            user = self.request.user
            audit.record("user.password", f"user:{user.get_username()}"[:100], actor=user)
        return answer
