"""The pages of the first run. Each can be opened again, and left and come back to."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from assistants import consequences, outbox
from assistants.models import OutboxItem
from runs import four_eyes, own_keys, pulse
from runs.home import SAMPLE, sample_directory
from runs.pages import for_those_who_may, page
from runs.refusal import Refusal
from runs.verdicts import Person
from sanduk_site import first_run, roles
from sanduk_site.health import WORKER_MAX_S
from sanduk_site.sudo import fresh_login_required

RIGHT = "runs.change_sitesetting"


@require_safe
@for_those_who_may(RIGHT)
def start(request: HttpRequest) -> HttpResponse:
    """Go on where it was left; what was chosen, once it is over."""
    step = first_run.next_step()
    if step is not None:
        return redirect("first-run-step", step.name)
    context = {
        "four_eyes": four_eyes.is_on(),
        "state": first_run.state(),
        **_waiting(request),
        "has_second": first_run.has_second(),
    }
    return page(request, "site/first_run/end.html", context, title="All set", section="")


@require_http_methods(["GET", "HEAD", "POST"])
@for_those_who_may(RIGHT)
@sensitive_post_parameters("key")
@fresh_login_required
def step(request: HttpRequest, name: str) -> HttpResponse:
    """Show a step, or take what was chosen in it and go on."""
    steps = first_run.steps()
    current = next((each for each in steps if each.name == name), None)
    if current is None:
        raise Http404
    problem, given = "", {}
    if request.method == "POST":
        try:
            given = _TAKEN[name](request) or {}
        except Refusal as exc:
            problem = str(exc)
        else:
            stay = name == "assistant"
            if not given:  # what can be shown once is shown now
                return redirect("first-run-step", name) if stay else redirect("first-run")
    context = {
        "steps": [(each, each.is_done(), each is current) for each in steps],
        "problem": problem,
        **_SHOWN[name](request),
        **given,
    }
    template = f"site/first_run/{name}.html"
    status = 409 if problem else 200
    return page(request, template, context, title=current.title, section="", status=status)


def _take_team(request: HttpRequest) -> None:
    said = request.POST.get("team")
    if said not in ("team", "one"):
        raise Refusal("say whether it is one person or a team")
    team = said == "team"
    if four_eyes.chosen() is True and not team:
        raise Refusal("four eyes are switched off in the terminal alone: sanduk user four-eyes off")
    if not four_eyes.is_pinned():
        four_eyes.choose(team, actor=request.user)


def _take_second(request: HttpRequest) -> dict[str, Any] | None:
    if "skip" in request.POST:
        first_run.remember(request.user, second="later")
        return None
    name = request.POST.get("name", "").strip()
    token = first_run.invite(name, actor=request.user)
    return {"link": request.build_absolute_uri(reverse("setup", args=[token])), "invited": name}


def _take_provider(request: HttpRequest) -> None:
    name = request.POST.get("provider", "")
    if name != first_run.REHEARSAL:
        first_run.keep_key(name, request.POST.get("key", ""), actor=request.user)
    first_run.remember(request.user, provider=name)


def _take_engine(request: HttpRequest) -> None:
    found = first_run.engine()
    if found.trouble and "anyway" not in request.POST:
        raise Refusal(found.trouble)
    first_run.remember(request.user, engine=found.name)


def _take_assistant(request: HttpRequest) -> None:
    if "skip" in request.POST:
        first_run.remember(request.user, assistant="none", finished=True)
        return
    first_run.make_sample(request.user)
    first_run.remember(request.user, assistant=SAMPLE, finished=True)


def _show_team(request: HttpRequest) -> dict[str, Any]:
    return {"pinned": four_eyes.is_pinned(), "chosen": four_eyes.chosen()}


def _show_second(request: HttpRequest) -> dict[str, Any]:
    others = roles.deciders().exclude(pk=request.user.pk).order_by("username")
    return {"others": others, "typed": request.POST.get("name", "")[:150]}


def _show_provider(request: HttpRequest) -> dict[str, Any]:
    return {"providers": sorted(own_keys.keyed()), "chosen": first_run.state()}


def _show_engine(request: HttpRequest) -> dict[str, Any]:
    return {"engine": first_run.engine()}


def _waiting(request: HttpRequest) -> dict[str, Any]:
    """What the sample wants to say, and whether this person may let it."""
    item = first_run.sample_item()
    person = Person(user=request.user, via="web")
    pending = item if item is not None and item.state == OutboxItem.State.PENDING else None
    others = roles.deciders().exclude(pk=request.user.pk).order_by("username")
    return {
        "item": item,
        "is_mine": pending is not None and outbox.may_approve(pending, person),
        "is_open": pending is not None,
        "others": list(others[:5]),
    }


def _show_assistant(request: HttpRequest) -> dict[str, Any]:
    assistant = first_run.sample()
    last = assistant.wakeups.order_by("-pk").first() if assistant else None
    age_s = pulse.age_s("worker")
    return {
        "assistant": assistant,
        "directory": sample_directory(),
        "four_eyes": four_eyes.is_on(),
        "wakeup": last,
        "words": consequences.words_of(last) if last else None,
        **_waiting(request),
        "worker_is_up": age_s is not None and age_s <= WORKER_MAX_S,
        "agent": first_run.AGENT,
    }


_TAKEN = {
    "team": _take_team,
    "second": _take_second,
    "provider": _take_provider,
    "engine": _take_engine,
    "assistant": _take_assistant,
}
_SHOWN = {
    "team": _show_team,
    "second": _show_second,
    "provider": _show_provider,
    "engine": _show_engine,
    "assistant": _show_assistant,
}
