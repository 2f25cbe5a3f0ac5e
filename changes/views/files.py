"""What of a change is given as it is: one file's lines, the patch, an artifact."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from changes import artifacts, patches, showing
from changes.attempts import kept_store
from changes.git import GitError
from changes.models import Artifact, Attempt, Change, RiskFlag
from changes.rendering import Look
from changes.views import gate
from runs.pages import attempt as attempted
from runs.pages import for_those_who_may, page
from runs.refusal import HostRefusal, Refusal
from runs.visible import visible

PATCH_MAX = 64 << 20  # bytes that are given to a browser


@require_safe
@for_those_who_may("changes.view_change")
def one(request: HttpRequest, uid: str, attempt: int, number: int) -> HttpResponse:
    """One file of an attempt by its number, with room for more of it."""
    it, chosen = chosen_of(uid, attempt)
    is_split, whole = request.GET.get("view") == "split", request.GET.get("lines") == "all"
    flags = list(RiskFlag.objects.filter(attempt=chosen))
    trouble, file = "", None
    try:
        file = showing.one(
            kept_store(it.repository), chosen, flags, Look(is_split), number=number, whole=whole
        )
        if file is None:
            raise Http404
    except (GitError, HostRefusal) as exc:
        trouble = f"It cannot be read: {exc}"
    back = reverse("change", args=[it.uid])
    context: dict[str, Any] = {
        "change": it, "attempt": chosen, "file": file, "trouble": trouble,
        "is_split": is_split, "is_whole": whole,
    }  # fmt: skip
    crumbs = [(reverse("changes"), "Changes"), (back, it.uid), ("", f"file {number}")]
    title = f"File {number} of change {it.uid}"
    return page(
        request, "changes/file.html", context, title=title, section="changes", crumbs=crumbs
    )


@require_safe
@for_those_who_may("changes.view_change")
def patch(request: HttpRequest, uid: str, attempt: int) -> HttpResponse:
    """The patch of an attempt, byte for byte, as a file."""
    it, chosen = chosen_of(uid, attempt)
    if chosen.patch_bytes > PATCH_MAX:
        why = f"the patch has {chosen.patch_bytes:,} bytes, too many for a page"
        return _not_given(request, it, f"{why}: sanduk change diff {it.uid}")
    trees = (chosen.base_tree, chosen.tree)
    return patch_between(request, it, trees, f"change-{it.uid}-{chosen.number}.patch")


def patch_between(
    request: HttpRequest, it: Change, trees: tuple[str, str], name: str
) -> HttpResponse:
    """The patch from one tree to another as a file; the change's page, with why, if it is none."""
    try:
        store = kept_store(it.repository)
        return _as_file(patches.patch(store, *trees, limit_bytes=PATCH_MAX), name)
    except (GitError, HostRefusal) as exc:
        return _not_given(request, it, f"what it holds cannot be read: {exc}")


def _not_given(request: HttpRequest, it: Change, why: str) -> HttpResponse:
    messages.error(request, f"Not done: {visible(why)}")
    return redirect("change", it.uid)


@require_safe
@for_those_who_may("changes.view_change")
def artifact(request: HttpRequest, uid: str, artifact: str) -> HttpResponse:
    """What an agent left, as a file that no browser shows; its name is ours."""
    rows = Artifact.objects.select_related("attempt__change")
    kept = rows.filter(uid=artifact, attempt__change__uid=uid).first()
    if kept is None:
        raise Http404
    try:
        data = artifacts.content_of(kept)
    except Refusal:
        attempted(request, lambda: str(artifacts.content_of(kept)))
        return redirect("change", uid)
    suffix = kept.name.rpartition(".")[2].lower()
    known = f".{suffix}" if suffix in artifacts.TYPES else ""
    return _as_file(data, f"artifact-{kept.uid}{known}")


def chosen_of(uid: str, number: int) -> tuple[Change, Attempt]:
    """A change and one of its attempts, or a 404."""
    it = gate.found(uid)
    chosen = it.attempts.filter(number=number).first()
    if chosen is None:
        raise Http404
    return it, chosen


def _as_file(data: bytes, name: str) -> HttpResponse:
    return HttpResponse(
        data,
        content_type="application/octet-stream",
        headers={
            "Content-Disposition": content_disposition_header(True, name) or "",
            "X-Content-Type-Options": "nosniff",
        },
    )
