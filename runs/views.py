"""The page of one run: what it did and could reach, its trace as it goes on, Stop and Run again."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_POST, require_safe

from runs import (
    again,
    asking,
    audit,
    figures,
    live,
    markdown,
    narration,
    own_words,
    preview,
    shown,
    telling,
)
from runs.models import Run
from runs.pages import attempt, for_those_who_may, page, to_login
from runs.plan import Plan, make_plan
from runs.refusal import Refusal
from runs.sight import seen_by
from runs.start_form import StartForm, filled_from, lacking
from runs.visible import visible

PREVIEWED = ("agent", "provider", "model", "mode", "image", "workdir", "runs as", "limits")
WHOSE = "wakeup__assistant"
SHOWN_MAX = 400_000  # characters of a report on the page; the whole is there to download
_LAST = 2**31 - 1


@require_safe
@for_those_who_may("runs.view_run")
def run(request: HttpRequest, uid: str) -> HttpResponse:
    """Everything that is known of one run."""
    found = figures.so_far([_found(request, uid)])[0]
    wakeup = getattr(found, "wakeup", None)
    name = wakeup.assistant.name if wakeup else visible(found.agent, limit=60)
    is_raw = request.GET.get("show") == "raw"
    before = _number(request.GET.get("before", ""))
    events = telling.trace(found, before)
    context = {
        "run": found,
        "name": name,
        "wakeup": wakeup,
        "reach": telling.reach(found),
        "closing": narration.notes(found) if found.state == Run.State.ENDED else [],
        "cost_kind": shown.cost_kinds([found])[found.pk] or "exact",
        "timeline": telling.timeline(found),
        "events": events,
        "first": events[0].sequence if events else 0,
        "last": events[-1].sequence if events else 0,
        "words": own_words.of_run(found.outcome, found.reason),
        "stands": figures.stands(found),
        "is_last_part": before is None,
        "calls": telling.calls(found),
        "ways_out": telling.ways_out(found),
        "checks": telling.checks(found),
        "options": telling.options(found),
        "is_raw": is_raw,
        "raw": found.report[:SHOWN_MAX] if is_raw else "",
        "prose": "" if is_raw else markdown.rendered(found.report),
        "is_cut": len(found.report) > (SHOWN_MAX if is_raw else markdown.RENDERED_MAX),
        "may_repeat": found.state == Run.State.ENDED
        and not wakeup
        and found.mode != "open"
        and found.trigger != Run.Trigger.CHANGE,
    }
    crumbs = [(reverse("admin:runs_run_changelist"), "Runs"), ("", found.uid)]
    title = f"{name}, run {found.uid}"
    return page(request, "runs/run.html", context, title=title, section="runs", crumbs=crumbs)


@require_safe
@for_those_who_may("runs.view_run")
def report(request: HttpRequest, uid: str) -> HttpResponse:
    """The report's exact bytes as a file: no browser shows them as a page."""
    found = _found(request, uid)
    name = content_disposition_header(True, f"report-{found.uid}.md") or ""
    return HttpResponse(
        found.report.encode(),
        content_type="application/octet-stream",
        headers={"Content-Disposition": name, "X-Content-Type-Options": "nosniff"},
    )


@require_safe
async def events(request: HttpRequest, uid: str) -> HttpResponseBase:
    """The trace as server-sent events, from the line behind `Last-Event-ID` or `?after` on."""
    user = await request.auser()
    request.user = user
    if not await sync_to_async(admin.site.has_permission)(request):
        return to_login(request)
    if not await user.ahas_perm("runs.view_run"):
        raise PermissionDenied
    seen = await sync_to_async(seen_by)(user, WHOSE)
    pk = await Run.objects.filter(seen, uid=uid).values_list("pk", flat=True).afirst()
    if pk is None:
        raise Http404
    given = request.headers.get("Last-Event-ID") or request.GET.get("after", "")
    after = _number(given) or 0
    return StreamingHttpResponse(
        live.stream(pk, after),
        content_type="text/event-stream",
        headers={"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"},
    )


@require_POST
@for_those_who_may("runs.view_run", "runs.stop_run")
def stop(request: HttpRequest, uid: str) -> HttpResponseRedirect:
    """Ask it to stop; a queued one ends at once."""
    found = _found(request, uid)
    answer = Run.objects.request_stop(found.uid, request.user.get_username()[:150])
    if answer:
        audit.record("run.stop", f"run:{found.uid}", actor=request.user)
    said = {
        "asked": (messages.SUCCESS, "It was asked to stop."),
        "cancelled": (messages.SUCCESS, "It was cancelled before it started."),
    }
    level, words = said.get(answer, (messages.WARNING, "It had ended already."))
    messages.add_message(request, level, words)
    return redirect("run", found.uid)


@require_POST
@for_those_who_may("runs.view_run", "runs.start_run")
def repeat(request: HttpRequest, uid: str) -> HttpResponseRedirect:
    """Queue it once more, exactly as it was ordered."""
    found = _found(request, uid)
    made: list[Run] = []

    def queue() -> str:
        made.append(again.repeat(found, by=request.user))
        return "It is queued, as it was ordered before."

    attempt(request, queue)
    return redirect("run", made[0].uid if made else found.uid)


@require_safe
@for_those_who_may("runs.view_run", "runs.start_run")
def new(request: HttpRequest) -> HttpResponse:
    """The form that starts a run, empty or as an earlier run was ordered."""
    uid = request.GET.get("from", "")
    if not uid:
        return _form(request, StartForm())
    earlier = _found(request, uid)
    if getattr(earlier, "wakeup", None) is not None:
        raise Http404
    said, left_out = filled_from(earlier)
    return _form(request, StartForm(initial=said), earlier=earlier, left_out=left_out)


@require_POST
@for_those_who_may("runs.view_run", "runs.start_run")
def start(request: HttpRequest) -> HttpResponse:
    """Show what would be started; start it when exactly that was seen before."""
    form = StartForm(request.POST)
    if not form.is_valid():
        return _form(request, form, status=409)
    try:
        order = form.order()
        plan = make_plan(order)
        seen, is_asked = "" if lacking(plan) else asking.digest(order), "start" in request.POST
        if seen and is_asked and request.POST.get("seen") == seen:
            made = asking.ask(order, by=request.user)
            messages.success(
                request, "It is queued. The worker starts it as soon as there is room."
            )
            return redirect("run", made.uid)
    except Refusal as exc:
        form.add_error(None, visible(str(exc)))
        return _form(request, form, status=409)
    would = _would_be(plan)
    context = {"seen": seen, "is_changed": is_asked and seen, "lacking": lacking(plan), **would}
    return _form(request, form, status=409 if is_asked else 200, **context)


def _would_be(plan: Plan) -> dict[str, object]:
    """The exact task, what the run could reach, and its particulars."""
    provider = plan.provider.name if plan.provider else ""
    run = Run(order=plan.order.stored(), mode=plan.order.mode_name, provider=provider)
    facts = [(name, value) for name, value in preview.lines(plan) if name in PREVIEWED]
    return {"task": plan.task, "reach": telling.reach(run), "facts": facts}


def _form(
    request: HttpRequest, form: StartForm, *, status: int = 200, **context: object
) -> HttpResponse:
    return page(
        request,
        "runs/new.html",
        {"form": form, **context},
        title="Start a run",
        section="runs",
        crumbs=[(reverse("admin:runs_run_changelist"), "Runs"), ("", "Start a run")],
        status=status,
    )


def _found(request: HttpRequest, uid: str) -> Run:
    rows = Run.objects.select_related("wakeup__assistant", "requested_by")
    found = rows.filter(seen_by(request.user, WHOSE), uid=uid).first()
    if found is None:
        raise Http404
    return found


def _number(text: str) -> int | None:
    """A line's number; None for what is none."""
    return min(int(text), _LAST) if text.isascii() and text.isdigit() and len(text) < 20 else None
