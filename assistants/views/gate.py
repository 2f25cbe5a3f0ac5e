"""The gate: one item that wants to leave, and a person's word on it."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_POST, require_safe

from assistants import (
    awaiting,
    deciding,
    destinations,
    excerpts,
    outbox,
    places,
    showing_items,
    working,
)
from assistants.models import OutboxItem
from assistants.outbox import Standing
from assistants.sending_back import is_sent_back, send_back
from runs import clock, markdown
from runs.models import Decision
from runs.pages import attempt, for_those_who_may, page
from runs.refusal import Refusal
from runs.sight import seen_by
from runs.typed import typed_before
from runs.verdicts import Person


@require_safe
@for_those_who_may("assistants.view_outboxitem")
def item(request: HttpRequest, pk: int) -> HttpResponse:
    """Everything a person should see before they decide, and the form that decides."""
    return _gate(request, _found(request, pk))


@require_safe
@for_those_who_may("assistants.view_outboxitem")
def body(request: HttpRequest, pk: int) -> HttpResponse:
    """The exact bytes that leave, as a file: no browser shows them as a page."""
    found = _found(request, pk)
    return HttpResponse(
        found.body.encode(),
        content_type="application/octet-stream",
        headers={
            "Content-Disposition": content_disposition_header(True, f"item-{found.pk}.md") or "",
            "X-Content-Type-Options": "nosniff",
        },
    )


@require_POST
@for_those_who_may("assistants.view_outboxitem", "assistants.decide_outboxitem")
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Approve, reject or send back exactly what the digests of the form name."""
    found = _found(request, pk)
    reason = request.POST.get("reason", "").replace("\r\n", "\n").strip()
    verdict = request.POST.get("verdict", "")
    if not attempt(request, lambda: _told(_decided(request, found, verdict, reason))):
        # the typed reason comes back with the page
        return _gate(request, _found(request, pk), typed=reason, status=409)
    return redirect("outbox-item", pk)


def _told(standing: Standing) -> str:
    missing, item = standing.missing, standing.item
    if is_sent_back(item):
        name = item.assistant.name
        return f"Item {item.pk} was sent back: your note is a message for {name}'s next wakeup."
    more = f" {missing} more approval{'s are' if missing > 1 else ' is'} needed." if missing else ""
    return f"Item {item.pk} is {item.get_state_display().lower()}.{more}"


def _decided(request: HttpRequest, found: OutboxItem, verdict: str, reason: str) -> Standing:
    digest = request.POST.get("digest", "")
    if len(digest) != len(found.sha256):
        raise Refusal("the form did not say what was read; read the item again")
    person = Person(user=request.user, via="web")
    if verdict == "back":
        return send_back(found.pk, person, expect=digest, note=reason)
    if verdict not in Decision.Verdict.values:
        raise Refusal("the form holds no decision")
    if verdict == Decision.Verdict.REJECT and not reason:
        raise Refusal("a rejection needs a reason: the assistant's owner will ask")
    if verdict == Decision.Verdict.APPROVE and found.secrets_found and not reason:
        raise Refusal("letting a possible secret pass needs a reason")
    given, seen = Decision.Verdict(verdict), request.POST.get("places", "")
    standing = outbox.decide(
        found.pk, given, person, expect=digest, seen_places=seen, reason=reason
    )
    if standing.item.state == OutboxItem.State.APPROVED:
        working.send_soon()
    return standing


@require_POST
@for_those_who_may("assistants.view_outboxitem", "assistants.decide_outboxitem")
def deliver(request: HttpRequest, pk: int) -> HttpResponseRedirect:
    """Send once more on purpose, try at once, or say that an unknown delivery has arrived."""
    found = _found(request, pk)
    what, to = request.POST.get("what", ""), request.POST.get("to", "")
    attempt(request, lambda: _delivered(found, what, to, request.user))
    return redirect("outbox-item", pk)


def _delivered(found: OutboxItem, what: str, to: str, user: Any) -> str:
    if what == "again":
        many = len(destinations.again(found, to=to, actor=user))
        return f"It goes out again to {'1 place' if many == 1 else f'{many} places'}."
    if what == "arrived":
        if not to:
            raise Refusal("the form does not say where it has arrived")
        destinations.arrived(found, to=to, actor=user)
        return "It is noted that it has arrived."
    raise Refusal("the form does not say what to do")


def _found(request: HttpRequest, pk: int) -> OutboxItem:
    rows = outbox.items().filter(seen_by(request.user, "assistant"), pk=pk)
    found: OutboxItem | None = rows.first()
    if found is None:
        raise Http404
    return found


def _gate(
    request: HttpRequest, found: OutboxItem, *, typed: str = "", status: int = 200
) -> HttpResponse:
    run, snapshot = deciding.run_of(found), deciding.snapshot_of(found)
    is_raw = request.GET.get("show") == "raw"
    risks, deliveries = deciding.risks(found), showing_items.deliveries(found)
    context: dict[str, Any] = {
        "item": found,
        "heading": excerpts.title(found.body[: excerpts.BEGINS]),
        "places": deciding.leads(found),
        "places_digest": places.digest_of_places(found),
        "size": len(found.body.encode()),
        "risks": risks,
        "is_grave": any(risk.kind == "secret" for risk in risks),
        "looked_at": deciding.looked_at(found),
        "is_raw": is_raw,
        "raw": found.body[: deciding.SHOWN_MAX] if is_raw else "",
        "prose": "" if is_raw else markdown.rendered(found.body),
        "is_cut": len(found.body) > (deciding.SHOWN_MAX if is_raw else markdown.RENDERED_MAX),
        "run": run,
        "snapshot": snapshot,
        "memory": deciding.changes(snapshot) if snapshot is not None else None,
        "standing": showing_items.standing(found)[1:],
        "deliveries": deliveries,
        "unknown": sorted(
            {each.destination.name for each in deliveries if each.state == "unknown"}
        ),
        "is_over": any(each.state in destinations.OVER for each in deliveries),
        "is_open": found.state == OutboxItem.State.PENDING and not _is_late(found),
        "excludes_author": outbox.excludes_author(found),
        "typed": typed or typed_before(request),
        "may_approve": outbox.may_approve(found, Person(user=request.user, via="web")),
        "has_approved": awaiting.has_approved(found, request.user),
    }
    return page(
        request,
        "assistants/gate.html",
        context,
        title=f"Item {found.pk} of {found.assistant.name}",
        section="outbox",
        crumbs=[(reverse("outbox"), "Outbox"), ("", str(found.pk))],
        status=status,
    )


def _is_late(found: OutboxItem) -> bool:
    return found.expires_at is not None and found.expires_at <= clock.now()
