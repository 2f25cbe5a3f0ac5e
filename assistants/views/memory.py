"""What an assistant wants to remember, and a person's yes or no to it."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from assistants import deciding, memory
from assistants.memory import showing, trust
from assistants.memory.comparing import earlier
from assistants.memory.differences import held
from assistants.memory.review import goes_back
from assistants.models import MemorySnapshot
from runs.pages import attempt, for_those_who_may, page
from runs.refusal import Refusal
from runs.sight import seen_by
from runs.typed import typed_before
from runs.verdicts import Person


@require_safe
@for_those_who_may("assistants.view_assistant")
def snapshot(request: HttpRequest, pk: int) -> HttpResponse:
    """What one wakeup changed, and the form that accepts, rejects or restores it."""
    return _shown(request, _found(request, pk))


@require_POST
@for_those_who_may("assistants.view_assistant", "assistants.review_memory")
def review(request: HttpRequest, pk: int) -> HttpResponse:
    """Accept or reject exactly the memory whose digest the form holds, or restore it."""
    found = _found(request, pk)
    what = request.POST.get("verdict", "")
    reason = request.POST.get("reason", "").replace("\r\n", "\n").strip()
    if not attempt(request, lambda: _done(request, found, what, reason)):
        return _shown(request, _found(request, pk), typed=reason, status=409)
    return redirect("memory", pk)


def _done(request: HttpRequest, found: MemorySnapshot, what: str, reason: str) -> str:
    if request.POST.get("digest") != found.digest:
        raise Refusal("this memory is not what was read; read it again")
    assistant, user = found.assistant, request.user
    if what == "approve":
        newer, behind = trust.newer_in_force(found), request.POST.get("behind", "")
        if newer is not None and behind != str(newer.pk):
            raise Refusal(f"{goes_back(newer)}; tick the box beside Accept if you mean that")
        number = newer.pk if newer is not None else None
        memory.accept(assistant, found, actor=user, via="web", reason=reason, behind=number)
        return "It is accepted: the next wakeup may start from it."
    if what == "reject":
        if not reason:
            raise Refusal("a rejection needs a reason")
        _, back, _ = memory.reject(assistant, found, actor=user, via="web", reason=reason)
        return "It is rejected." + (" The workspace is put back." if back is not None else "")
    if what == "restore":
        done, undo, _ = memory.restore(assistant, found, actor=user)
        was = f" What was there is snapshot {undo.pk}." if undo is not None else ""
        waits = " It waits for review." if done.review == done.Review.WAITING else ""
        return f"The workspace holds snapshot {found.pk} again.{was}{waits}"
    raise Refusal("the form holds no decision")


def _found(request: HttpRequest, pk: int) -> MemorySnapshot:
    rows = MemorySnapshot.objects.select_related("assistant", "wakeup__run")
    found = rows.filter(seen_by(request.user, "assistant"), pk=pk).first()
    if found is None:
        raise Http404
    return found


def _shown(
    request: HttpRequest, found: MemorySnapshot, *, typed: str = "", status: int = 200
) -> HttpResponse:
    name = found.assistant.name
    risks = deciding.of_memory(found)
    hiding = held()
    newer = trust.newer_in_force(found) if found.review == found.Review.WAITING else None
    context = {
        "snapshot": found,
        "risks": risks,
        "is_grave": any(risk.kind == "secret" for risk in risks),
        "earlier": earlier(found),
        "size": showing.size(found.size_bytes),
        "memory": deciding.changes(found),
        "left_out": [hiding.text(each) for each in showing.left_out(found)][:100],
        "is_open": found.review == MemorySnapshot.Review.WAITING,
        "newer": newer,
        "goes_back": goes_back(newer).removeprefix("this ") if newer is not None else "",
        "may_accept": memory.may_accept(found, Person(user=request.user, via="web")),
        "typed": typed or typed_before(request),
    }
    return page(
        request,
        "assistants/memory.html",
        context,
        title=f"Memory {found.pk} of {name}",
        section="assistants",
        crumbs=[
            (reverse("assistants"), "Assistants"),
            (reverse("assistant", args=[name]), name),
            ("", f"memory {found.pk}"),
        ],
        status=status,
    )
