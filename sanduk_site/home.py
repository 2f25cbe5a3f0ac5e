"""Home: one screen that says what waits, what runs, and what needs a look."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from runs import four_eyes
from runs.pages import for_those_who_may, page
from sanduk_site import first_run, overview
from sanduk_site import waiting as all_waiting


@require_safe
@for_those_who_may()
def home(request: HttpRequest) -> HttpResponse:
    """What this person may see of everything that goes on."""
    user = request.user
    context: dict[str, Any] = {"items": [], "memories": [], "changes": []}
    is_strict = four_eyes.is_on()
    if user.has_perm("assistants.view_outboxitem"):
        context |= {
            **overview.waiting(user, is_strict=is_strict),
            "wakeups": overview.next_wakeups(user),
        }
    if user.has_perm("changes.view_change"):
        context |= all_waiting.changes_for(user, is_strict=is_strict)
        context["waiting_count"] = context.get("waiting_count", 0) + context["changes_mine"]
        context["for_others"] = context.get("for_others", 0) + context["changes_others"]
    context |= overview.oldest_first(context)
    if user.has_perm("runs.view_run"):
        context |= {
            "running": overview.running(user),
            "troubles": overview.troubles(user),
            "spend": overview.spend(),
        }
    if user.has_perm("runs.change_sitesetting"):
        context["first_run_is_open"] = not first_run.is_finished()
    return page(request, "site/home.html", context, title="Home", section="home")


@require_safe
@for_those_who_may()
def waiting(request: HttpRequest) -> HttpResponse:
    """How many things wait for this person, for the count in the frame."""
    return JsonResponse({"waiting": all_waiting.count_for(request.user)})
