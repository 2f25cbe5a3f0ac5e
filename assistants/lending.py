"""A person's own key for an assistant's wakeups: used by it, read by nobody."""

from __future__ import annotations

from typing import Any

import msgspec
from django.db import transaction

from assistants import belonging
from assistants.config import restored
from assistants.models import Assistant
from runs import audit, own_keys
from runs.order import Order
from runs.refusal import Refusal


def lend(assistant: Assistant, *, actor: Any) -> None:
    """Have its wakeups use the key that `actor` keeps for its provider. Nobody lends another's.

    Raises Refusal: they may not see it, keep no such key, or somebody else lends theirs.
    """
    belonging.require(actor, assistant, "see")
    provider = _provider(assistant)
    if provider not in own_keys.kept(actor):
        raise Refusal(f"you keep no key for {provider}, which {assistant.name} uses")
    with transaction.atomic():
        rows = Assistant.objects.filter(pk=assistant.pk, key_of=None)
        if not rows.update(key_of=actor):
            raise Refusal(f"somebody lends {assistant.name} their key already")
        assistant.key_of = actor
        audit.record("assistant.lend", _subject(assistant), actor=actor, provider=provider)


def take_back(assistant: Assistant, *, actor: Any) -> None:
    """Have its wakeups use this installation's key again.

    Args:
        actor: the site user; None for the OS account of this process, which holds the files.

    Raises Refusal: it is not theirs, and neither is the assistant.
    """
    with transaction.atomic():
        found = Assistant.objects.select_for_update(of=("self",)).get(pk=assistant.pk)
        if found.key_of_id is None:
            raise Refusal(f"nobody lends {assistant.name} a key")
        is_theirs = actor is not None and actor.pk == found.key_of_id
        if not is_theirs and not belonging.decides(actor, found):
            raise Refusal("the key is not yours, and neither is the assistant")
        Assistant.objects.filter(pk=found.pk).update(key_of=None)
        assistant.key_of = None
        audit.record("assistant.unlend", _subject(found), actor=actor)


def with_key(assistant: Assistant, order: Order) -> Order:
    """The order of a wakeup with the key that was lent for it.

    Raises Refusal when whoever lent it is shut out, or may not see the assistant any more.
    """
    person: Any = assistant.key_of
    if person is None:
        return order
    if not person.is_active or not belonging.may(person, assistant, "see"):
        raise Refusal(
            f"{person.get_username()} lent it their key and has nothing to do with it any more; "
            "take the key back on its page"
        )
    if order.provider != _provider(assistant):
        raise Refusal(f"its args name another provider than the one {person} lent a key for")
    return msgspec.structs.replace(order, key_of=person.pk)


def _provider(assistant: Assistant) -> str:
    try:
        return restored(assistant.config).provider
    except msgspec.ValidationError:
        raise Refusal(f"the settings of {assistant.name} are of another version") from None


def _subject(assistant: Assistant) -> str:
    return f"assistant:{assistant.name}"
