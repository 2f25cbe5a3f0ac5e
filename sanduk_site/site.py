"""The admin site, with the navigation and the count of what waits in its frame."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from assistants.models import MemorySnapshot, OutboxItem
from runs import clock
from runs.sight import seen_by

# name, address, word, the right that is needed
_SECTIONS = (
    ("runs", "admin:runs_run_changelist", "Runs", "runs.view_run"),
    ("assistants", "assistants", "Assistants", "assistants.view_assistant"),
    ("outbox", "outbox", "Outbox", "assistants.view_outboxitem"),
    ("spend", "spend", "Spend", "runs.view_run"),
    ("images", "images", "Recipes", "runs.view_run"),
    ("system", "system", "System", "runs.view_run"),
)


class SandukSite(AdminSite):
    site_header = site_title = "sanduk"
    site_url = None
    index_title = "Administration"

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context = super().each_context(request)
        match = request.resolver_match
        if not context["has_permission"]:
            return context
        is_list_of_runs = match is not None and match.url_name == "runs_run_changelist"
        return {
            **context,
            "sections": _sections(request),
            "section": "runs" if is_list_of_runs else "admin",
            "waiting_count": waiting_for(request.user),
        }


def waiting_for(user: Any) -> int:
    """How many things wait for a decision that this person may take."""
    waiting = 0
    if user.has_perm("assistants.decide_outboxitem"):
        pending = OutboxItem.objects.filter(
            seen_by(user, "assistant"), state=OutboxItem.State.PENDING
        )
        waiting += pending.exclude(expires_at__lte=clock.now()).count()
    if user.has_perm("assistants.review_memory"):
        held = MemorySnapshot.objects.filter(review=MemorySnapshot.Review.WAITING)
        waiting += held.filter(seen_by(user, "assistant")).count()
    return waiting


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
