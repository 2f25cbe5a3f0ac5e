"""Home: one screen that says what waits, what runs, and what needs a look."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from runs.pages import for_those_who_may, page
from sanduk_site.site import waiting_for


@require_safe
@for_those_who_may()
def home(request: HttpRequest) -> HttpResponse:
    return page(request, "site/home.html", {}, title="Home", section="home")


@require_safe
@for_those_who_may()
def waiting(request: HttpRequest) -> HttpResponse:
    """How many things wait for this person, for the count in the frame."""
    return JsonResponse({"waiting": waiting_for(request.user)})
