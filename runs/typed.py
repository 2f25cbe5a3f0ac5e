"""What somebody typed into a form while their session ended: it comes back after they sign in.

Nothing is kept for a visitor who is not signed in: the page that asks for the password carries the
text, and only the session of whoever typed it keeps it, until their page is shown again.
"""

from __future__ import annotations

from typing import Any

from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from runs import clock

FIELDS = ("text", "reason")  # of the forms in which somebody writes
BY = "typed_by"  # whose form it was, by their number
TYPED, BACK = "typed", "next"
_KEY = "typed"  # in Django's session
_LASTS_S = 600.0
_MOST = 64 * 1024  # characters


class LoginForm(AdminAuthenticationForm):
    """The admin's, with a sentence of our own for what does not let in."""

    error_messages = {
        **AdminAuthenticationForm.error_messages,
        "invalid_login": "The name or the password is not right. Small letters and capitals count.",
    }


def ask_again(request: HttpRequest, back: str) -> HttpResponse | None:
    """The login with what was typed in it; None when nothing was."""
    typed = next((request.POST[name] for name in FIELDS if request.POST.get(name, "").strip()), "")
    if not typed or BY not in request.POST:  # another form, to which it would not come back
        return None
    context = {
        "form": LoginForm(request),
        "typed": typed[:_MOST],
        "by": request.POST[BY],
        "back": back,
    }
    return render(request, "site/signed_out.html", context, status=403)


class SignInAgain(LoginView):
    """The login to which that page posts."""

    authentication_form = LoginForm
    template_name = "site/signed_out.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        form = self.request.POST
        typed = {"typed": form.get(TYPED, "")[:_MOST], "by": form.get(BY, "")}
        return {**super().get_context_data(**kwargs), **typed, "back": self.get_redirect_url()}

    def form_valid(self, form: Any) -> HttpResponse:
        answer = super().form_valid(form)
        given = self.request.POST
        # to somebody else who signs in here it is not shown
        if given.get(BY) == str(self.request.user.pk):
            self.request.session[_KEY] = {
                "at": self.get_redirect_url(),
                "text": given.get(TYPED, "")[:_MOST],
                "when": clock.now().timestamp(),
            }
        return answer


def typed_before(request: HttpRequest) -> str:
    """What this person had typed on this page before they had to sign in again; once."""
    kept = request.session.get(_KEY)
    if not isinstance(kept, dict) or kept.get("at") != request.path:
        return ""
    del request.session[_KEY]
    is_new = 0 <= clock.now().timestamp() - float(kept["when"]) < _LASTS_S
    return str(kept["text"]) if is_new else ""
