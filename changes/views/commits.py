"""One commit of a series: to be read by itself, and decided on where the whole is."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from changes import showing
from changes.attempts import kept_store
from changes.git import GitError
from changes.models import RiskFlag
from changes.rendering import Look
from changes.views import files, gate
from runs.pages import for_those_who_may, page
from runs.refusal import HostRefusal


@require_safe
@for_those_who_may("changes.view_change")
def one(request: HttpRequest, uid: str, attempt: int, commit: int) -> HttpResponse:
    """Its words, and the files it changes with the lines that differ."""
    it, chosen = files.chosen_of(uid, attempt)
    if chosen.trees_of(commit) is None:
        raise Http404
    is_split, number = request.GET.get("view") == "split", gate.query_of(request).get("part", "1")
    flags = list(RiskFlag.objects.filter(attempt=chosen, commit=commit))
    trouble, part = "", None
    try:
        part = showing.of_commit(
            kept_store(it.repository), chosen, commit, flags, Look(is_split), number=int(number)
        )
    except (GitError, HostRefusal) as exc:
        trouble = f"What it holds cannot be read: {exc}"
    context: dict[str, Any] = {
        "change": it, "attempt": chosen, "number": commit, "commit": chosen.commits[commit - 1],
        "flags": flags, "part": part, "trouble": trouble, "is_split": is_split,
        "is_current": chosen.pk == it.attempt_id,
    }  # fmt: skip
    back = reverse("change", args=[it.uid])
    crumbs = [(reverse("changes"), "Changes"), (back, it.uid), ("", f"commit {commit}")]
    title = f"Commit {commit} of change {it.uid}"
    return page(
        request, "changes/commit.html", context, title=title, section="changes", crumbs=crumbs
    )


@require_safe
@for_those_who_may("changes.view_change")
def patch(request: HttpRequest, uid: str, attempt: int, commit: int) -> HttpResponse:
    """The patch of one commit, byte for byte, as a file."""
    it, chosen = files.chosen_of(uid, attempt)
    if (trees := chosen.trees_of(commit)) is None:
        raise Http404
    name = f"change-{it.uid}-{chosen.number}-commit-{commit}.patch"
    return files.patch_between(request, it, trees, name)
