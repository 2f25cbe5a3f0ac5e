"""All assistants, and one of them: when it wakes, what it is told, what it says and remembers."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from assistants import arriving, briefing, excerpts, listing, mailbox, working
from assistants.config import restored
from assistants.models import Assistant, OutboxItem
from assistants.schedules import timing_of
from assistants.ticking import wake_by_hand
from runs import clock
from runs.pages import for_those_who_may, page
from runs.refusal import Refusal
from runs.visible import visible

HISTORY, MESSAGES, ITEMS, SNAPSHOTS, FIRES = 60, 30, 20, 30, 5
# what the security of an assistant rests on, by the keys of its file
_SECURITY = {"mode", "mounts", "args", "allow_hosts", "gate", "recipe", "runtime", "provider"}


@require_safe
@for_those_who_may("assistants.view_assistant")
def listed(request: HttpRequest) -> HttpResponse:
    """Every assistant with its state, its next wakeup, its last outcome and what waits."""
    now = clock.now()
    rows: list[Any] = list(listing.described())
    for each in rows:
        each.state_word = listing.state(each, now)
        each.next_wakeup = listing.next_at(each)
    context = {"rows": rows}
    return page(request, "assistants/list.html", context, title="Assistants", section="assistants")


@require_safe
@for_those_who_may("assistants.view_assistant")
def one(request: HttpRequest, name: str) -> HttpResponse:
    return _shown(request, _found(name))


@require_POST
@for_those_who_may("assistants.view_assistant", "assistants.tell_assistant")
def tell(request: HttpRequest, name: str) -> HttpResponse:
    """Put a message into its inbox."""
    assistant = _found(name)
    text = request.POST.get("text", "").replace("\r\n", "\n")
    try:
        mailbox.tell(assistant, text, source="web", author=request.user)
    except Refusal as exc:
        messages.error(request, visible(str(exc)))
        return _shown(request, assistant, typed=text, status=409)
    messages.success(request, "It is told, and reads it at its next wakeup.")
    return redirect("assistant", name)


@require_POST
@for_those_who_may("assistants.view_assistant", "assistants.tell_assistant")
def untell(request: HttpRequest, name: str, pk: int) -> HttpResponseRedirect:
    """Take a message back that was not read yet."""
    assistant = _found(name)
    if not assistant.inbox.filter(pk=pk).exists():
        raise Http404
    try:
        mailbox.take_back(pk, actor=request.user)
    except Refusal as exc:
        messages.error(request, visible(str(exc)))
    else:
        messages.success(request, "The message was taken back.")
    return redirect("assistant", name)


@require_POST
@for_those_who_may("assistants.view_assistant", "assistants.wake_assistant")
def wake(request: HttpRequest, name: str) -> HttpResponseRedirect:
    """Have the worker wake it now, whatever its schedule says."""
    assistant = _found(name)
    user = request.user
    try:
        if assistant.wakeups.exclude(state="ended").filter(trigger="hand").exists():
            raise Refusal(f"{name} was asked to wake already, and that has not ended")
        working.ring(wake_by_hand(assistant, asked_by=user.get_username(), actor=user))
    except Refusal as exc:
        messages.error(request, visible(str(exc)))
    else:
        messages.success(request, "The worker wakes it as soon as there is room.")
    return redirect("assistant", name)


@require_POST
@for_those_who_may("assistants.view_assistant", "assistants.change_assistant")
def switch(request: HttpRequest, name: str) -> HttpResponseRedirect:
    """Enable or disable it."""
    assistant = _found(name)
    if request.POST.get("to") == "enabled":
        done = arriving.enable(assistant, actor=request.user)
    elif request.POST.get("to") == "disabled":
        reason = request.POST.get("reason", "").strip()[:300]
        by = f"by {request.user.get_username()}"
        done = arriving.disable(assistant, f"{by}: {reason}" if reason else by, actor=request.user)
    else:
        messages.error(request, "The form does not say what to do.")
        return redirect("assistant", name)
    if done:
        messages.success(request, f"{name} is {request.POST['to']}.")
    else:
        messages.warning(request, f"{name} was {request.POST['to']} already.")
    return redirect("assistant", name)


def _found(name: str) -> Assistant:
    found = listing.described().filter(name=name).first()
    if found is None:
        raise Http404
    return found


def _shown(
    request: HttpRequest, assistant: Any, *, typed: str = "", status: int = 200
) -> HttpResponse:
    now = clock.now()
    fires, fires_trouble = _fires(assistant)
    settings = listing.settings(assistant)
    context: dict[str, Any] = {
        "assistant": assistant,
        "state": listing.state(assistant, now),
        "next": listing.next_at(assistant),
        "schedules": [listing.spoken(timing_of(each)) for each in assistant.schedules.all()],
        "fires": fires,
        "fires_trouble": fires_trouble,
        "history": list(listing.history(assistant, HISTORY))[::-1],
        "inbox": assistant.inbox.waiting().select_related("author")[:MESSAGES],
        "told": assistant.inbox.exclude(consumed_at=None).order_by("-consumed_at")[:5],
        "items": _items(assistant),
        "snapshots": assistant.snapshots.order_by("-pk")[:SNAPSHOTS],
        "security": [pair for pair in settings if pair[0] in _SECURITY],
        "settings": [pair for pair in settings if pair[0] not in _SECURITY],
        "brief": _brief(assistant),
        "typed": typed,
    }
    return page(
        request,
        "assistants/one.html",
        context,
        title=assistant.name,
        section="assistants",
        crumbs=[(reverse("assistants"), "Assistants"), ("", assistant.name)],
        status=status,
    )


def _fires(assistant: Assistant) -> tuple[list[Any], str]:
    if assistant.disabled_at is not None:
        return [], ""
    try:
        return [slot for _, slot in listing.next_wakeups(assistant, FIRES, clock.now())], ""
    except Refusal as exc:
        return [], str(exc)


def _items(assistant: Assistant) -> list[OutboxItem]:
    found = excerpts.begun(assistant.outbox.order_by("-created_at", "-pk"))
    rows = list(found[:ITEMS])
    for item in rows:
        item.title = excerpts.title(item.begins)
    return rows


def _brief(assistant: Assistant) -> dict[str, str]:
    """Its text, or why it cannot be read."""
    try:
        return {"text": briefing.brief(assistant, restored(assistant.config)), "trouble": ""}
    except (briefing.BrokenSettings, ValueError) as exc:
        return {"text": "", "trouble": str(exc)}
