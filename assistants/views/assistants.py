"""All assistants, and one of them: when it wakes, what it is told, what it says and remembers."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from assistants import (
    arriving,
    briefing,
    briefs,
    consequences,
    excerpts,
    in_words,
    listing,
    mailbox,
    security,
    working,
)
from assistants.config import restored
from assistants.memory import trust
from assistants.models import Assistant, OutboxItem, Wakeup
from assistants.schedules import timing_of
from assistants.ticking import wake_by_hand
from assistants.views import sharing
from runs import clock
from runs.own_words import Words
from runs.pages import attempt, for_those_who_may, page
from runs.refusal import Refusal
from runs.sight import seen_by
from runs.typed import typed_before

HISTORY, MESSAGES, ITEMS, SNAPSHOTS, FIRES = 60, 30, 20, 30, 5
# what the security of an assistant rests on, by the keys of its file
_SECURITY = {"mode", "mounts", "args", "allow_hosts", "gate", "recipe", "runtime", "provider"}


@require_safe
@for_those_who_may("assistants.view_assistant")
def listed(request: HttpRequest) -> HttpResponse:
    """Every assistant with its state, its next wakeup, its last outcome and what waits."""
    now = clock.now()
    rows: list[Any] = list(listing.described().filter(seen_by(request.user)))
    for each in rows:
        each.state_word = listing.state(each, now)
        each.next_wakeup = listing.next_at(each)
    context = {"rows": rows}
    return page(request, "assistants/list.html", context, title="Assistants", section="assistants")


@require_safe
@for_those_who_may("assistants.view_assistant")
def one(request: HttpRequest, name: str) -> HttpResponse:
    return _shown(request, _found(request, name))


@require_POST
@for_those_who_may("assistants.view_assistant", "assistants.tell_assistant")
def tell(request: HttpRequest, name: str) -> HttpResponse:
    """Put a message into its inbox."""
    assistant = _found(request, name)
    text = request.POST.get("text", "").replace("\r\n", "\n")

    def told() -> str:
        mailbox.tell(assistant, text, source="web", author=request.user)
        return "It is told, and reads it at its next wakeup."

    if not attempt(request, told):
        return _shown(request, assistant, typed=text, status=409)
    return redirect("assistant", name)


@require_POST
@for_those_who_may("assistants.view_assistant", "assistants.tell_assistant")
def untell(request: HttpRequest, name: str, pk: int) -> HttpResponseRedirect:
    """Take a message back that was not read yet."""
    if not _found(request, name).inbox.filter(pk=pk).exists():
        raise Http404
    attempt(request, lambda: _taken_back(pk, request.user))
    return redirect("assistant", name)


def _taken_back(pk: int, user: Any) -> str:
    mailbox.take_back(pk, actor=user)
    return "The message was taken back."


@require_POST
@for_those_who_may("assistants.view_assistant", "assistants.wake_assistant")
def wake(request: HttpRequest, name: str) -> HttpResponseRedirect:
    """Have the worker wake it now, whatever its schedule says."""
    assistant = _found(request, name)
    attempt(request, lambda: _woken(assistant, request.user))
    return redirect("assistant", name)


def _woken(assistant: Assistant, user: Any) -> str:
    asked = assistant.wakeups.exclude(state=Wakeup.State.ENDED).filter(trigger="hand")
    if asked.exists():
        raise Refusal(f"{assistant.name} was asked to wake already, and that has not ended")
    working.ring(wake_by_hand(assistant, asked_by=user.get_username(), actor=user))
    return "The worker wakes it as soon as there is room."


@require_POST
@for_those_who_may("assistants.view_assistant", "assistants.change_assistant")
def switch(request: HttpRequest, name: str) -> HttpResponseRedirect:
    """Enable or disable it."""
    assistant, form = _found(request, name), request.POST
    to, reason = form.get("to", ""), form.get("reason", "").strip()[:300]
    attempt(request, lambda: _switched(assistant, to, reason, request.user))
    return redirect("assistant", name)


def _switched(assistant: Assistant, to: str, reason: str, user: Any) -> str:
    if to == "enabled":
        done = arriving.enable(assistant, actor=user)
    elif to == "disabled":
        by = f"by {user.get_username()}"
        done = arriving.disable(assistant, f"{by}: {reason}" if reason else by, actor=user)
    else:
        raise Refusal("the form does not say what to do")
    if not done:
        raise Refusal(f"{assistant.name} was {to} already")
    return f"{assistant.name} is {to}."


def _found(request: HttpRequest, name: str) -> Assistant:
    found = listing.described().filter(seen_by(request.user), name=name).first()
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
        "schedules": [
            (in_words.schedule(timing), listing.spoken(timing))
            for timing in map(timing_of, assistant.schedules.all())
        ],
        "fires": fires,
        "fires_trouble": fires_trouble,
        "history": _history(assistant),
        "why_disabled": _why_disabled(assistant),
        "inbox": assistant.inbox.waiting().select_related("author")[:MESSAGES],
        "told": assistant.inbox.exclude(consumed_at=None).order_by("-consumed_at")[:5],
        "items": _items(assistant),
        "snapshots": _snapshots(assistant),
        "security": in_words.settings(pair for pair in settings if pair[0] in _SECURITY),
        "settings": in_words.settings(pair for pair in settings if pair[0] not in _SECURITY),
        "told_on_web": security.told(assistant),
        "may_secure": security.may_change(request.user, assistant),
        "brief": _brief(assistant),
        "typed": typed or typed_before(request),
        **sharing.context(request.user, assistant),
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


def _history(assistant: Assistant) -> list[Any]:
    rows: list[Any] = list(listing.history(assistant, HISTORY))[::-1]
    for each in rows:
        each.words = consequences.words_of(each)
    return rows


def _why_disabled(assistant: Assistant) -> Words:
    last = consequences.last_failed([assistant]) if assistant.disabled_at is not None else {}
    return consequences.words_of_disabling(assistant.disabled_reason, last.get(assistant.pk))


def _items(assistant: Assistant) -> list[OutboxItem]:
    found = excerpts.begun(assistant.outbox.order_by("-created_at", "-pk"))
    rows = list(found[:ITEMS])
    for item in rows:
        item.title = excerpts.title(item.begins)
    return rows


def _snapshots(assistant: Assistant) -> list[Any]:
    rows: list[Any] = list(assistant.snapshots.order_by("-pk")[:SNAPSHOTS])
    now = trust.in_force(assistant)
    for each in rows:
        each.is_superseded = trust.is_superseded(each, now)
    return rows


def _brief(assistant: Assistant) -> dict[str, Any]:
    """Its text and the task that it makes with the messages that wait; or why there is none."""
    try:
        text = briefing.brief(assistant, restored(assistant.config))
    except (briefing.BrokenSettings, ValueError) as exc:
        return {"text": "", "task": "", "trouble": str(exc)}
    newest = assistant.briefs.values_list("sha256", flat=True).first()
    is_new = newest is not None and newest != briefs.digest_of(text)
    task = briefing.task(text, briefing.chosen(assistant))
    return {"text": text, "task": task, "trouble": "", "is_new": is_new}
