"""Whose an assistant is, and what its owner lets others do. One that is nobody's is everybody's.

A role says what somebody may do at all; this says with which assistants. Both must say yes.
"""

from __future__ import annotations

from typing import Any, Literal

from django.contrib.auth import get_user_model
from django.db import transaction

from assistants.models import Assistant, Grant
from runs import audit
from runs.refusal import Refusal
from runs.sight import EVERY
from runs.visible import visible

Act = Literal["see", "tell", "wake"]


def may(user: Any, assistant: Assistant, act: Act) -> bool:
    """Whether a person may.

    Args:
        user: the site user; None for the OS account of this process, which holds the files.
    """
    if user is None or assistant.owner_id in (None, user.pk) or user.has_perm(EVERY):
        return True
    grant = Grant.objects.filter(assistant=assistant, user=user).first()
    if grant is None:
        return False
    return {"see": True, "tell": grant.may_tell, "wake": grant.may_wake}[act]


def require(user: Any, assistant: Assistant, act: Act) -> None:
    """Raise Refusal, naming the owner, when they may not."""
    if not may(user, assistant, act):
        raise Refusal(
            f"{assistant.name} belongs to {assistant.owner}, who has not let you {act} it"
        )


def decides(user: Any, assistant: Assistant) -> bool:
    """Whether a person may say who else may do what with it."""
    if user is None or user.has_perm(EVERY):
        return True
    return assistant.owner_id is not None and assistant.owner_id == user.pk


def person_named(name: str) -> Any:
    """The person something is given to or taken from. Raises Refusal when nobody is let in so."""
    found = get_user_model().objects.filter(username=name, is_active=True).first()
    if found is None:
        raise Refusal(
            f"there is no such person as {visible(name, limit=80)!r}, or they are shut out"
        )
    return found


def give_to(assistant: Assistant, owner: Any, *, actor: Any = None) -> None:
    """Let it belong to somebody, or, with None, to nobody.

    Raises Refusal when `actor` may not give it away.
    """
    _require_decides(actor, assistant)
    with transaction.atomic():
        Assistant.objects.filter(pk=assistant.pk).update(owner=owner)
        assistant.owner = owner
        name = owner.get_username() if owner is not None else ""
        _write_down("owner", assistant, actor, owner=name)


def grant(
    assistant: Assistant, user: Any, *, tell: bool = False, wake: bool = False, actor: Any = None
) -> Grant:
    """Let somebody see it, and perhaps tell or wake it; what they had before is replaced.

    Raises Refusal when it is nobody's, or `actor` may not say so.
    """
    _require_decides(actor, assistant)
    if assistant.owner_id is None:
        raise Refusal(f"{assistant.name} is nobody's, so everybody may already")
    if user.pk == assistant.owner_id:
        raise Refusal(f"{user.get_username()} owns {assistant.name} and may everything already")
    with transaction.atomic():
        given, _ = Grant.objects.update_or_create(
            assistant=assistant, user=user, defaults={"may_tell": tell, "may_wake": wake}
        )
        _write_down("grant", assistant, actor, user=user.get_username(), tell=tell, wake=wake)
    return given


def withdraw(assistant: Assistant, user: Any, *, actor: Any = None) -> bool:
    """Take back what somebody was granted; False when that was nothing. Raises Refusal."""
    _require_decides(actor, assistant)
    with transaction.atomic():
        gone, _ = Grant.objects.filter(assistant=assistant, user=user).delete()
        if gone:
            _write_down("withdraw", assistant, actor, user=user.get_username())
    return bool(gone)


def _require_decides(actor: Any, assistant: Assistant) -> None:
    if not decides(actor, assistant):
        raise Refusal(f"only the owner of {assistant.name} or an administrator may say that")


def _write_down(action: str, assistant: Assistant, actor: Any, **detail: Any) -> None:
    audit.record(f"assistant.{action}", f"assistant:{assistant.name}", actor=actor, **detail)
