"""Having the doctor look, from the page of the system."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from runs.pages import for_those_who_may
from sanduk_site import examination

KEYS = "runs.change_sitesetting"  # who administers sees which key it is


@require_POST
@for_those_who_may("runs.view_run", "runs.start_run")
def look(request: HttpRequest) -> HttpResponse:
    """Begin to look at everything; the page does not wait for it."""
    if examination.the_examiner.begin():
        messages.success(request, "The doctor looks at everything; load this page again to see.")
    else:
        messages.info(request, "The doctor is at it already.")
    return redirect(f"{reverse('system')}#doctor")


def shown(user: Any) -> dict[str, Any]:
    """What the page says of it to this person."""
    last = examination.last()
    if last is not None and not user.has_perm(KEYS):
        last = last.without_keys()
    return {"last": last, "going_since": examination.the_examiner.going_since}
