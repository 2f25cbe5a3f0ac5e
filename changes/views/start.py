"""Asking for a change: the form, what would be started, and the start of exactly that."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from changes import asking, handover
from changes.git import GitError
from changes.start_form import ChangeForm, digest
from runs import preview, telling
from runs.models import Run
from runs.pages import for_those_who_may, page
from runs.plan import Plan
from runs.refusal import HostRefusal, Refusal
from runs.start_form import lacking
from runs.verdicts import Person
from runs.visible import visible

PREVIEWED = ("agent", "provider", "model", "mode", "image", "limits")


@require_safe
@for_those_who_may("changes.view_change", "changes.start_change")
def new(request: HttpRequest) -> HttpResponse:
    return _form(request, ChangeForm())


@require_POST
@for_those_who_may("changes.view_change", "changes.start_change")
def start(request: HttpRequest) -> HttpResponse:
    """Show what would be asked for; ask for it when exactly that was seen before."""
    form = ChangeForm(request.POST)
    if not form.is_valid():
        return _form(request, form, status=409)
    try:
        path, options = form.path(), form.options()
        plan = asking.planned(options.order.task, options.order)
        seen, is_asked = "" if lacking(plan) else digest(path, options), "start" in request.POST
        if seen and is_asked and request.POST.get("seen") == seen:
            person = Person(user=request.user, via="web")
            change = asking.ask(path, options.order.task, options=options, person=person)
            handover.wait_for_worker(change.uid)
            messages.success(request, "It is queued. The worker makes it as soon as it has room.")
            return redirect("change", change.uid)
    except (Refusal, HostRefusal, GitError) as exc:
        form.add_error(None, visible(str(exc)))
        return _form(request, form, status=409)
    would = {"path": path, "lacking": lacking(plan), **_would_be(plan)}
    context = {"seen": seen, "is_changed": is_asked and seen, **would}
    return _form(request, form, status=409 if is_asked else 200, **context)


def _would_be(plan: Plan) -> dict[str, object]:
    """What the run could reach, and its particulars."""
    provider = plan.provider.name if plan.provider else ""
    run = Run(order=plan.order.stored(), mode=plan.order.mode_name, provider=provider)
    facts = [(name, value) for name, value in preview.lines(plan) if name in PREVIEWED]
    return {"task": plan.order.task, "reach": telling.reach(run), "facts": facts}


def _form(
    request: HttpRequest, form: ChangeForm, *, status: int = 200, **context: object
) -> HttpResponse:
    return page(
        request,
        "changes/new.html",
        {"form": form, **context},
        title="Ask for a change",
        section="changes",
        crumbs=[(reverse("changes"), "Changes"), ("", "Ask for a change")],
        status=status,
    )
