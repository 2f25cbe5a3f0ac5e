"""What of a change is given as it is: one file's lines, the patch, an artifact."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from changes import artifacts, patches, showing
from changes.attempts import kept_store
from changes.git import GitError
from changes.models import Artifact, Attempt, RiskFlag
from changes.rendering import Look
from changes.views import gate
from runs.pages import attempt as attempted
from runs.pages import for_those_who_may, page
from runs.refusal import HostRefusal, Refusal

PATCH_MAX = 64 << 20  # bytes that are given to a browser


@require_safe
@for_those_who_may("changes.view_change")
def one(request: HttpRequest, uid: str, attempt: int, number: int) -> HttpResponse:
    """One file of an attempt by its number, with room for more of it."""
    it, chosen = _chosen(uid, attempt)
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
    it, chosen = _chosen(uid, attempt)
    said: list[bytes] = []

    def read() -> str:
        if chosen.patch_bytes > PATCH_MAX:
            raise Refusal(
                f"the patch has {chosen.patch_bytes:,} bytes, too many for a page: "
                f"sanduk change diff {it.uid}"
            )
        try:
            store = kept_store(it.repository)
            said.append(patches.patch(store, chosen.base_tree, chosen.tree))
        except (GitError, HostRefusal) as exc:
            raise Refusal(f"what it holds cannot be read: {exc}") from None
        return ""

    try:
        read()
    except Refusal:
        attempted(request, read)  # says why on the page that comes
        return redirect("change", it.uid)
    return _as_file(said[0], f"change-{it.uid}-{chosen.number}.patch")


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


def _chosen(uid: str, number: int) -> tuple[Any, Attempt]:
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
