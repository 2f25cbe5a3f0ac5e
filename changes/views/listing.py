"""The list of changes, and those that were asked for together."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from changes import awaiting, reviewing
from changes.marks import with_marks
from changes.models import Batch, Change
from runs.pages import for_those_who_may, page

PER_PAGE = 50
BATCH_SHOWN = 200
SHOWS = {
    "waiting": ("Waiting", ["review"]),
    "going": ("Being made", ["queued", "running", "landing"]),
    "done": ("Decided", ["accepted", "rejected"]),
    "nothing": ("Came to nothing", ["unchanged", "failed"]),
    "all": ("All", list(Change.State.values)),
}


@require_safe
@for_those_who_may("changes.view_change")
def listed(request: HttpRequest) -> HttpResponse:
    """Changes of one kind of state; what waits, the oldest first."""
    chosen = request.GET.get("show", "waiting")
    if chosen not in SHOWS:
        raise Http404
    order = ("state_at", "pk") if chosen == "waiting" else ("-created_at", "-pk")
    found = with_marks(Change.objects.filter(state__in=SHOWS[chosen][1])).order_by(*order)
    part = Paginator(found, PER_PAGE).get_page(request.GET.get("page"))
    mine = awaiting.changes_for(request.user)
    for change in part:
        change.is_mine = change.pk in mine
    context = {
        "part": part,
        "tabs": [(name, word, name == chosen) for name, (word, _) in SHOWS.items()],
        "chosen": chosen,
        "skills": awaiting.open_skills().count(),
    }
    return page(request, "changes/list.html", context, title="Changes", section="changes")


@require_safe
@for_those_who_may("changes.view_change")
def batch(request: HttpRequest, uid: str) -> HttpResponse:
    """What came of tasks that were asked for together, and which of them do not go together."""
    rows = with_marks(Change.objects.filter(batch=uid)).order_by("created_at", "pk")
    many = rows.count()
    changes = list(rows[:BATCH_SHOWN])
    if not changes:
        raise Http404
    mine = awaiting.changes_for(request.user)
    for change in changes:
        change.is_mine = change.pk in mine
    conflicts, unchecked = reviewing.between(changes)
    spent = [each.run for each in changes if each.run is not None]
    context = {
        "batch": Batch.objects.filter(uid=uid).first(),
        "repository": changes[0].repository,
        "changes": changes,
        "more": max(many - len(changes), 0),
        "conflicts": [
            (one, conflict.change, reviewing.told(conflict.paths)) for one, conflict in conflicts
        ],
        "unchecked": unchecked,
        "spent": sum(run.spent_usd or 0 for run in spent),
        "spent_kind": "lower_bound" if any(run.spent_is_lower_bound for run in spent) else "exact",
        "states": _states(changes),
    }
    crumbs = [(reverse("changes"), "Changes"), ("", f"Batch {uid}")]
    title = f"Batch {uid}"
    return page(
        request, "changes/batch.html", context, title=title, section="changes", crumbs=crumbs
    )


def _states(changes: list[Change]) -> list[tuple[str, int]]:
    found: dict[str, int] = {}
    for each in changes:
        found[each.state] = found.get(each.state, 0) + 1
    return sorted(found.items())
