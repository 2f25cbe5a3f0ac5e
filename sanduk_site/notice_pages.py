"""Of what somebody wants an e-mail, and where to."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from assistants import noticing
from assistants.models import Notice
from runs.pages import for_those_who_may, page


class NoticeForm(forms.Form):
    email = forms.EmailField(
        label="My e-mail address", required=False, help_text="Empty: no e-mail at all."
    )
    of_items = forms.BooleanField(
        label="When an item, a change or a skill waits for a decision that I may take",
        required=False,
    )
    of_troubles = forms.BooleanField(
        label="When an assistant is disabled, a run was interrupted, a delivery was given up or "
        "may not have arrived, a change failed or is in review again, its tests are not green, "
        "little room is left on the disk, or the worker is away",
        required=False,
    )


@require_http_methods(["GET", "HEAD", "POST"])
@for_those_who_may()
def notices(request: HttpRequest) -> HttpResponse:
    """Show what was chosen, or choose."""
    user: Any = request.user
    form = NoticeForm(request.POST) if request.method == "POST" else NoticeForm(initial=_is(user))
    if form.is_bound and form.is_valid():
        said = form.cleaned_data
        user.email = said["email"]
        user.save(update_fields=["email"])
        noticing.choose(user, of_items=said["of_items"], of_troubles=said["of_troubles"])
        messages.success(request, "It is kept. What is new from now on counts.")
        return redirect("notices")
    context = {"form": form, "sends": settings.SANDUK_SENDS_MAIL}
    return page(request, "site/notices.html", context, title="Notices", section="")


def _is(user: Any) -> dict[str, Any]:
    found = Notice.objects.filter(user=user).first() or Notice()
    return {
        "email": user.email,
        "of_items": found.of_items,
        "of_troubles": found.of_troubles,
    }
