"""Who owns an assistant, and whom its owner lets see, tell or wake it."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.http import QueryDict

from assistants import belonging, lending
from assistants.models import Assistant
from runs.refusal import Refusal

HARMLESS = frozenset({"unlend"})  # what lets nobody do more than before, and takes nobody out
NOBODY = "(nobody)"  # in a name's place; no name of a person has brackets


def shared(form: QueryDict, assistant: Assistant, actor: Any) -> str:
    """Do what a form asks for; what to say of it. Raises Refusal."""
    what, named = form.get("what", ""), form.get("person", "")
    if what == "lend":
        lending.lend(assistant, actor=actor)
        return f"{assistant.name} uses your key from its next wakeup on."
    if what == "unlend":
        lending.take_back(assistant, actor=actor)
        return f"{assistant.name} uses this installation's key again."
    if not belonging.decides(actor, assistant):
        raise Refusal(f"only the owner of {assistant.name} or an administrator may say that")
    if what == "owner":
        if not named:
            raise Refusal("the form does not say whose it is to be")
        owner = None if named == NOBODY else belonging.person_named(named)
        belonging.give_to(assistant, owner, actor=actor)
        return f"{assistant.name} belongs to {'nobody' if owner is None else named} now."
    if what == "grant":
        may = {act: act in form for act in ("tell", "wake")}
        belonging.grant(assistant, belonging.person_named(named), actor=actor, **may)
        words = " and ".join(["see", *(act for act, yes in may.items() if yes)])
        return f"{named} may {words} {assistant.name}, as far as their roles go."
    if what == "withdraw":
        if not belonging.withdraw(assistant, belonging.person_named(named), actor=actor):
            raise Refusal(f"{named} was granted nothing")
        return f"{named} is granted nothing of {assistant.name} any more."
    raise Refusal("the form does not say what to do")


def context(user: Any, assistant: Assistant) -> dict[str, Any]:
    """What the assistant's page says of it, and whom its forms offer."""
    decides = belonging.decides(user, assistant)
    people = get_user_model().objects.filter(is_active=True).order_by("username")
    return {
        "may_tell": belonging.may(user, assistant, "tell"),
        "may_wake": belonging.may(user, assistant, "wake"),
        "decides": decides,
        "nobody": NOBODY,
        "grants": list(assistant.grants.select_related("user")) if decides else [],
        "people": list(people.values_list("username", flat=True)) if decides else [],
    }
