"""What is new in an attempt since an earlier one: to be read, and decided on where the whole is."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from changes import comparing, showing
from changes.attempts import kept_store
from changes.git import GitError
from changes.models import Attempt, Change, RiskFlag
from changes.rendering import Look
from changes.views import gate
from runs.pages import for_those_who_may, page
from runs.refusal import HostRefusal, Refusal


@require_safe
@for_those_who_may("changes.view_change")
def listed(request: HttpRequest, uid: str, attempt: int, earlier: int) -> HttpResponse:
    """The files in which two attempts differ, with the lines that do."""
    it, before, after = _chosen(uid, attempt, earlier)
    is_split, number = request.GET.get("view") == "split", gate.query_of(request).get("part", "1")
    trouble, part = "", None
    try:
        part = showing.since(
            kept_store(it.repository), before, after, _flags(after), Look(is_split),
            number=int(number),
        )  # fmt: skip
    except (GitError, HostRefusal) as exc:
        trouble = f"What they hold cannot be read: {exc}"
    context: dict[str, Any] = {
        "change": it, "attempt": after, "since": before.number, "part": part, "trouble": trouble,
        "is_split": is_split, "is_current": after.pk == it.attempt_id,
    }  # fmt: skip
    crumbs = [*_crumbs(it), ("", f"attempt {before.number} to {after.number}")]
    title = f"New in attempt {after.number} of change {it.uid}"
    return page(
        request, "changes/since.html", context, title=title, section="changes", crumbs=crumbs
    )


@require_safe
@for_those_who_may("changes.view_change")
def one(request: HttpRequest, uid: str, attempt: int, earlier: int, number: int) -> HttpResponse:
    """One of these files, with room for more of it."""
    it, before, after = _chosen(uid, attempt, earlier)
    is_split, whole = request.GET.get("view") == "split", request.GET.get("lines") == "all"
    trouble, file = "", None
    try:
        file = showing.one_since(
            kept_store(it.repository), before, after, _flags(after), Look(is_split),
            number=number, whole=whole,
        )  # fmt: skip
        if file is None:
            raise Http404
    except (GitError, HostRefusal) as exc:
        trouble = f"It cannot be read: {exc}"
    context: dict[str, Any] = {
        "change": it, "attempt": after, "since": before.number, "file": file, "trouble": trouble,
        "is_split": is_split, "is_whole": whole,
    }  # fmt: skip
    back = reverse("change-since", args=[it.uid, after.number, before.number])
    words = f"attempt {before.number} to {after.number}"
    crumbs = [*_crumbs(it), (back, words), ("", f"file {number}")]
    title = f"File {number}, new in attempt {after.number} of change {it.uid}"
    return page(
        request, "changes/file.html", context, title=title, section="changes", crumbs=crumbs
    )


def _chosen(uid: str, attempt: int, earlier: int) -> tuple[Change, Attempt, Attempt]:
    """A change and two attempts of it, the earlier one first, or a 404."""
    it = gate.found(uid)
    after = it.attempts.filter(number=attempt).first()
    before = it.attempts.filter(number=earlier).first()
    if before is None or after is None or earlier >= attempt:
        raise Http404
    try:
        return it, *comparing.earlier_first(before, after)
    except Refusal:
        raise Http404 from None


def _flags(attempt: Attempt) -> list[RiskFlag]:
    return list(RiskFlag.objects.filter(attempt=attempt))


def _crumbs(it: Change) -> list[tuple[str, str]]:
    return [(reverse("changes"), "Changes"), (reverse("change", args=[it.uid]), it.uid)]
