"""What an assistant or a run may reach, said on the web: seen first, then done with the password.

The right to it is one of its own. No command, no path and no wildcard can be said here.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from assistants import security as saying
from assistants.models import Assistant
from runs import again, asking, preview, telling
from runs.models import Run
from runs.pages import attempt, for_those_who_may, page
from runs.plan import make_plan
from runs.refusal import Refusal
from runs.sight import seen_by
from runs.visible import visible
from sanduk_site.sudo import fresh_login_required

RIGHT = "assistants.change_assistant_security"
_FLAGS = ("hold", "exclude_author", "memory_review")
_FACTS = ("agent", "provider", "model", "mode", "image", "workdir", "runs as", "limits", "rules")


@require_safe
@for_those_who_may("assistants.view_assistant", RIGHT)
def security(request: HttpRequest, name: str) -> HttpResponse:
    """The form that says it, as it is now."""
    return _form(request, _assistant(request, name))


@require_POST
@for_those_who_may("assistants.view_assistant", RIGHT)
@fresh_login_required
def say(request: HttpRequest, name: str) -> HttpResponse:
    """Show what would change; do it when exactly that was seen."""
    found, form = _assistant(request, name), request.POST
    try:
        said = _said(found, form)
        after = saying.wanted(found, said)
        changes = saying.differences(saying.settings_of(found), after)
        if not changes:
            raise Refusal("nothing would change")
        would = saying.digest_of(after.stored())
        if "do" in form and form.get("would") == would:
            saying.change(found, said, seen=form.get("seen", ""), actor=request.user)
            words = ", ".join(f"{each.name} is {each.after}" for each in changes)
            messages.success(request, f"{found.name}: {words}, from its next wakeup on.")
            return redirect("assistant", name)
        if "do" in form:
            raise Refusal("it is not what the last page showed; look at it first")
    except Refusal as exc:
        messages.error(request, f"Not done: {visible(str(exc))}")
        return _form(request, found, typed=form, status=409)
    return _form(request, found, typed=form, changes=changes, would=would)


@require_safe
@for_those_who_may("runs.view_run", RIGHT)
def allow(request: HttpRequest, uid: str, sequence: int) -> HttpResponse:
    """What allowing one host that was refused would change."""
    return _shown(request, *_refused(request, uid, sequence), sequence)


@require_POST
@for_those_who_may("runs.view_run", RIGHT)
@fresh_login_required
def allow_now(request: HttpRequest, uid: str, sequence: int) -> HttpResponse:
    """Allow it to the assistant, or run again with it, when exactly that was seen."""
    run, place = _refused(request, uid, sequence)
    wakeup, seen = getattr(run, "wakeup", None), request.POST.get("seen", "")
    if wakeup is not None:
        assistant = wakeup.assistant
        if not attempt(request, lambda: _allowed(assistant, place, seen, request.user)):
            return _shown(request, run, place, sequence, status=409)
        return redirect("assistant", assistant.name)
    made: list[Run] = []

    def queue() -> str:
        if len(seen) != 64:
            raise Refusal("the form does not say what was seen; look again")
        made.append(again.repeat(run, by=request.user, allow=place, seen=seen))
        return f"It is queued, as it was ordered before and with {place}."

    _require_starting(request)
    if not attempt(request, queue):
        return _shown(request, run, place, sequence, status=409)
    return redirect("run", made[0].uid)


def _allowed(assistant: Assistant, place: str, seen: str, actor: Any) -> str:
    hosts = (*saying.settings_of(assistant).allow_hosts, place)
    saying.change(assistant, {"allow_hosts": hosts}, seen=seen, actor=actor)
    return f"{assistant.name} may reach {place} from its next wakeup on."


def _shown(
    request: HttpRequest, run: Run, place: str, sequence: int, *, status: int = 200
) -> HttpResponse:
    wakeup = getattr(run, "wakeup", None)
    context: dict[str, Any] = {"run": run, "place": place, "sequence": sequence}
    try:
        if wakeup is not None:
            context |= _for_assistant(wakeup.assistant, place)
        else:
            _require_starting(request)
            context |= _for_run(run, place)
    except Refusal as exc:
        context["trouble"] = str(exc)
    crumbs = [
        (reverse("admin:runs_run_changelist"), "Runs"),
        (reverse("run", args=[run.uid]), run.uid),
        ("", "Allow a host"),
    ]
    title = f"Allow {place}"
    return page(
        request, "site/allow.html", context, title=title, section="runs", crumbs=crumbs,
        status=status,
    )  # fmt: skip


def _for_assistant(assistant: Assistant, place: str) -> dict[str, Any]:
    config = saying.settings_of(assistant)
    said = {"allow_hosts": (*config.allow_hosts, place)}
    changes = saying.differences(config, saying.wanted(assistant, said))
    if not changes:
        raise Refusal(f"{assistant.name} may reach it already, from its next wakeup on")
    return {"assistant": assistant, "changes": changes, "seen": saying.digest(assistant)}


def _for_run(run: Run, place: str) -> dict[str, Any]:
    order = again.order_of(run, allow=place)
    plan = make_plan(order)
    provider = plan.provider.name if plan.provider else ""
    would = Run(order=order.stored(), mode=order.mode_name, provider=provider)
    return {
        "seen": asking.digest(order),
        "reach": telling.reach(would),
        "task": plan.task,
        "facts": [(name, value) for name, value in preview.lines(plan) if name in _FACTS],
    }


def _refused(request: HttpRequest, uid: str, sequence: int) -> tuple[Run, str]:
    """A run, and the host it was refused: the web names no other one."""
    rows = Run.objects.select_related("wakeup__assistant")
    run = rows.filter(seen_by(request.user, "wakeup__assistant"), uid=uid).first()
    if run is None:
        raise Http404
    way = run.egress_attempts.filter(sequence=sequence, allowed=False).first()
    place = telling.allowable(way.flag) if way is not None else ""
    if not place or run.mode != "sealed":
        raise Http404
    return run, place


def _require_starting(request: HttpRequest) -> None:
    if not request.user.has_perm("runs.start_run"):
        raise PermissionDenied


def _assistant(request: HttpRequest, name: str) -> Assistant:
    rows = Assistant.objects.present().filter(seen_by(request.user), name=name)
    found = rows.first()
    if found is None or not saying.may_change(request.user, found):
        raise Http404
    try:
        saying.settings_of(found)
    except Refusal as exc:  # its page says so as well
        raise Http404 from exc
    return found


def _said(assistant: Assistant, form: QueryDict) -> dict[str, Any]:
    """What the form says of each field. Raises Refusal for what is no number."""
    number = form.get("approvals", "")
    if not (number.isascii() and number.isdigit() and len(number) < 4):
        raise Refusal("approvals: a whole number from 1 to 20")
    config = saying.settings_of(assistant)
    said = {field: field in form for field in _FLAGS}
    said["hold"] = said["hold"] or config.hold
    return {
        **said,
        "mode": form.get("mode", ""),
        "approvals": int(number),
        "allow_hosts": _lines(config.allow_hosts, form.get("allow_hosts", "")),
    }


def _lines(before: tuple[str, ...], text: str) -> tuple[str, ...]:
    """The hosts of a text, one a line; as they were when the lines say the same."""
    lines = tuple(line.strip() for line in text.splitlines() if line.strip())
    return before if lines == before else lines


def _form(
    request: HttpRequest,
    assistant: Assistant,
    *,
    typed: QueryDict | None = None,
    changes: list[saying.Difference] | None = None,
    would: str = "",
    status: int = 200,
) -> HttpResponse:
    config = saying.settings_of(assistant)
    fields: dict[str, Any] = {field: getattr(config, field) for field in saying.FIELDS}
    fields["allow_hosts"] = "\n".join(config.allow_hosts)
    if typed is not None:
        fields |= {field: field in typed for field in _FLAGS}
        fields |= {field: typed.get(field, "") for field in ("mode", "approvals", "allow_hosts")}
    context = {
        "assistant": assistant,
        "fields": fields,
        "modes": (*saying.MODES, *(() if config.mode in saying.MODES else (config.mode,))),
        "is_held": config.hold,
        "changes": changes,
        "would": would,
        "seen": saying.digest(assistant),
        "told": saying.told(assistant),
    }
    name = assistant.name
    return page(
        request,
        "assistants/security.html",
        context,
        title=f"What {name} may reach",
        section="assistants",
        crumbs=[
            (reverse("assistants"), "Assistants"),
            (reverse("assistant", args=[name]), name),
            ("", "What it may reach"),
        ],
        status=status,
    )
