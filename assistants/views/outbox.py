"""The outbox as a list: filters that are kept by name, and several items rejected at once.

Nothing is approved here: who approves has the item before them.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from assistants import awaiting, excerpts, filtering, outbox
from assistants.models import Assistant, OutboxItem
from runs.models import Decision
from runs.pages import attempt, for_those_who_may, page
from runs.refusal import Refusal
from runs.sight import seen_by
from runs.typed import typed_before
from runs.verdicts import Person
from runs.visible import visible

PER_PAGE = 50
_DIGEST = 64


@require_safe
@for_those_who_may("assistants.view_outboxitem")
def listed(request: HttpRequest) -> HttpResponse:
    """Items of one kind of state; what waits, the oldest first."""
    return _list(request, request.GET)


@require_POST
@for_those_who_may("assistants.view_outboxitem")
def filters(request: HttpRequest) -> HttpResponseRedirect:
    """Keep a filter by name, or forget one."""
    form = request.POST
    chosen = filtering.said(form) or filtering.Filter()

    def act() -> str:
        name = form.get("name", "")
        if form.get("what") == "forget":
            filtering.forget(request.user, name)
            return f"{visible(name)} is forgotten."
        filtering.keep(request.user, name, chosen)
        return f"{visible(name.strip())} is kept, for you alone."

    attempt(request, act)
    return redirect(f"{reverse('outbox')}{chosen.address}")


@require_POST
@for_those_who_may("assistants.view_outboxitem", "assistants.decide_outboxitem")
def reject(request: HttpRequest) -> HttpResponse:
    """Reject each chosen item, exactly as the page showed it, all with one reason."""
    form = request.POST
    reason = form.get("reason", "").replace("\r\n", "\n").strip()
    chosen = list(dict.fromkeys(form.getlist("item")))
    try:
        if not chosen:
            raise Refusal("choose items first")
        if len(chosen) > PER_PAGE:
            raise Refusal(f"at most {PER_PAGE} items at once: those of one page")
        if not reason:
            raise Refusal("a rejection needs a reason: the assistant's owner will ask")
        read = [_read(word) for word in chosen]
    except Refusal as exc:
        messages.error(request, f"Not done: {exc}")
        return _list(request, form, typed=reason, chosen=chosen, status=409)
    left = [word for word, (pk, sha) in zip(chosen, read, strict=True)
            if not _rejected(request, pk, sha, reason)]  # fmt: skip
    if done := len(chosen) - len(left):
        messages.success(request, f"{done} item{'s were' if done > 1 else ' was'} rejected.")
    if left:
        return _list(request, form, typed=reason, chosen=left, status=409)
    back = filtering.said(form) or filtering.Filter()
    return redirect(f"{reverse('outbox')}{back.address}")


def _read(word: str) -> tuple[int, str]:
    """An item's number and its digest. Raises Refusal for what names no item that was read."""
    pk, _, sha256 = word.partition(":")
    is_number = pk.isascii() and pk.isdigit() and len(pk) < 18
    if not is_number or len(sha256) != _DIGEST:
        raise Refusal("the form did not say what was read; look at the list again")
    return int(pk), sha256


def _rejected(request: HttpRequest, pk: int, sha256: str, reason: str) -> bool:
    """False, and the reason in the page, when one cannot be rejected."""
    person = Person(user=request.user, via="web")
    try:
        if not OutboxItem.objects.filter(seen_by(request.user, "assistant"), pk=pk).exists():
            raise Refusal(f"there is no item {pk}")
        outbox.decide(pk, Decision.Verdict.REJECT, person, expect=sha256, reason=reason)
    except Refusal as exc:
        messages.error(request, f"Not rejected: {visible(str(exc))}")
        return False
    return True


def _list(
    request: HttpRequest,
    given: QueryDict,
    *,
    typed: str = "",
    chosen: list[str] | None = None,
    status: int = 200,
) -> HttpResponse:
    looked = filtering.said(given)
    if looked is None:
        raise Http404
    items = OutboxItem.objects.filter(seen_by(request.user, "assistant"))
    rows = excerpts.begun(filtering.found_by(looked, items, request.user))
    rows = rows.select_related("assistant", "wakeup__run")
    part = Paginator(rows.prefetch_related("assistant__destinations"), PER_PAGE).get_page(
        given.get("page")
    )
    mine = awaiting.items_for(request.user) if looked.show == "waiting" else frozenset()
    for item in part:
        item.is_for_others = looked.show == "waiting" and item.pk not in mine
        item.title = excerpts.title(item.begins)
        item.goes_to = excerpts.destinations(item.assistant)
        item.word = f"{item.pk}:{item.sha256}"
        item.is_chosen = item.word in (chosen or ())
    rest = f"&{looked.query}" if looked.query else ""
    names = Assistant.objects.filter(seen_by(request.user)).order_by("name")
    context: dict[str, Any] = {
        "part": part,
        "tabs": [
            (f"?show={name}{rest}", word, name == looked.show)
            for name, (word, _) in filtering.SHOWS.items()
        ],
        "looked": looked,
        "chosen": looked.show,
        "query": f"{looked.show}{rest}",
        "risks": filtering.RISKS.items(),
        "names": list(names.values_list("name", flat=True).distinct()),
        "kept": [
            (row.name, one.address, one == looked) for row, one in filtering.kept(request.user)
        ],
        "typed": typed or typed_before(request),
    }
    return page(
        request,
        "assistants/outbox.html",
        context,
        title="Outbox",
        section="outbox",
        status=status,
    )
