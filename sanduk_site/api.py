"""What terminals elsewhere ask of the site: outbox and inbox, under the rules of the pages."""

from __future__ import annotations

from typing import Any

from django.http import Http404, QueryDict
from django.urls import path

from assistants import deciding, mailbox, outbox, places, showing_items, showing_messages, working
from assistants.models import Assistant, InboxMessage, OutboxItem
from runs.models import Decision
from runs.refusal import Refusal
from runs.sight import seen_by
from runs.verdicts import DIGEST_MIN, Person
from sanduk_site import roles, terminal_tokens
from sanduk_site.api_access import VERSION, Caller, for_terminals

LIMIT, LIMIT_MAX = 50, 1000
_STATES = {"pending": OutboxItem.State.PENDING, "undelivered": OutboxItem.State.APPROVED}


@for_terminals()
def me(caller: Caller, asked: QueryDict) -> dict[str, Any]:
    """Who the token says that asks."""
    return {
        "version": VERSION,
        "user": caller.user.get_username(),
        "roles": roles.of(caller.user),
        "terminal": caller.token.name,
        "may_decide": caller.token.may_decide,
        "expires_at": caller.token.expires_at,
    }


@for_terminals(method="POST")
def leave(caller: Caller, sent: dict[str, Any]) -> dict[str, Any]:
    """End the token that asks."""
    return {"ended": terminal_tokens.end(caller.token, actor=caller.user)}


@for_terminals("assistants.view_outboxitem")
def items(caller: Caller, asked: QueryDict) -> list[dict[str, Any]]:
    """Items, the newest last."""
    found = outbox.items().filter(seen_by(caller.user, "assistant"))
    if name := asked.get("name"):
        found = found.filter(assistant=_assistant(caller, name))
    if states := [state for word, state in _STATES.items() if asked.get(word)]:
        found = found.filter(state__in=states)
    rows = list(found.order_by("-created_at", "-pk")[: _limit(asked)])[::-1]
    return [showing_items.as_json(each) for each in rows]


@for_terminals("assistants.view_outboxitem")
def item(caller: Caller, asked: QueryDict, pk: int) -> dict[str, Any]:
    """One item whole, with what to look at first and what an approval has to name."""
    found = _item(caller, pk)
    goes_to = [f"{each['name']}: {each['leads']}" for each in deciding.leads(found)]
    return {
        **showing_items.as_json(found),
        "risks": [f"{risk.head}. {risk.text}" for risk in deciding.risks(found)],
        "standing": showing_items.standing(found),
        "goes_to": goes_to,
        "deliveries": [
            showing_items.delivery_json(each) for each in showing_items.deliveries(found)
        ],
        "expect": _expected(found),
    }


@for_terminals(
    "assistants.view_outboxitem", "assistants.decide_outboxitem", method="POST", decides=True
)
def decide(caller: Caller, sent: dict[str, Any], pk: int) -> dict[str, Any]:
    """Approve or reject exactly what was read, to exactly where that said that it goes."""
    found = _item(caller, pk)
    verdict, reason = _text(sent, "verdict"), _text(sent, "reason").strip()
    if verdict not in Decision.Verdict.values:
        raise Refusal("the verdict is approve or reject")
    digest, _, leads = _text(sent, "expect").partition(":")
    if len(digest) < DIGEST_MIN:
        raise Refusal(f"--expect must say what was read; sanduk outbox show {found.pk} prints it")
    seen = None
    if verdict == Decision.Verdict.APPROVE:
        seen = places.digest_of_places(found)
        if len(leads) < DIGEST_MIN or not seen.startswith(leads.lower()):
            raise Refusal(
                f"where item {found.pk} goes is not what was read; read it again: sanduk outbox "
                f"show {found.pk}"
            )
    standing = outbox.decide(
        found.pk,
        Decision.Verdict(verdict),
        Person(user=caller.user, via="token"),
        expect=digest,
        seen_places=seen,
        reason=reason,
    )
    if standing.item.state == OutboxItem.State.APPROVED:
        working.send_soon()
    return {**showing_items.as_json(standing.item), "missing": standing.missing}


@for_terminals("assistants.view_inboxmessage")
def messages(caller: Caller, asked: QueryDict) -> list[dict[str, Any]]:
    """Messages that wait, or all."""
    rows = InboxMessage.objects.filter(seen_by(caller.user, "assistant"))
    if name := asked.get("name"):
        rows = rows.filter(assistant=_assistant(caller, name))
    found = showing_messages.chosen(rows, everything=bool(asked.get("all")), limit=_limit(asked))
    return [showing_messages.as_json(each) for each in found]


@for_terminals("assistants.view_assistant", "assistants.tell_assistant", method="POST")
def tell(caller: Caller, sent: dict[str, Any], name: str) -> dict[str, Any]:
    """Put a message into an assistant's inbox."""
    assistant = _assistant(caller, name)
    message, arrived = mailbox.tell(
        assistant,
        _text(sent, "text"),
        source="token",
        source_id=_text(sent, "source_id"),
        author=caller.user,
    )
    return {
        "id": message.pk,
        "assistant": assistant.name,
        "new": arrived,
        "disabled": assistant.disabled_at is not None,
    }


def _item(caller: Caller, pk: int) -> OutboxItem:
    found: OutboxItem | None = (
        outbox.items().filter(seen_by(caller.user, "assistant"), pk=pk).first()
    )
    if found is None:
        raise Http404
    return found


def _assistant(caller: Caller, name: str) -> Assistant:
    rows = Assistant.objects.present().filter(seen_by(caller.user), name=name)
    found: Assistant | None = rows.first()
    if found is None:
        raise Http404
    return found


def _expected(found: OutboxItem) -> str:
    """The beginnings of the digests of what is said and of where it goes."""
    return f"{found.sha256[:DIGEST_MIN]}:{places.digest_of_places(found)[:DIGEST_MIN]}"


def _limit(asked: QueryDict) -> int:
    given = asked.get("limit", str(LIMIT))
    if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= LIMIT_MAX:
        raise Refusal(f"limit is a number from 1 to {LIMIT_MAX}")
    return int(given)


def _text(sent: dict[str, Any], name: str) -> str:
    value = sent.get(name, "")
    if not isinstance(value, str):
        raise Refusal(f"{name} must be a text")
    return value


urlpatterns = [
    path("me", me, name="api-me"),
    path("leave", leave, name="api-leave"),
    path("outbox", items, name="api-outbox"),
    path("outbox/<int:pk>", item, name="api-item"),
    path("outbox/<int:pk>/decide", decide, name="api-decide"),
    path("inbox", messages, name="api-inbox"),
    path("inbox/<str:name>", tell, name="api-tell"),
]
