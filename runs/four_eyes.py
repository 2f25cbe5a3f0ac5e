"""Whether nobody may approve what they asked for or fed themselves: two people look, always."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import transaction

from runs import audit, clock
from runs.models import SiteSetting
from runs.refusal import Refusal

NAME = "four_eyes"


def is_on() -> bool:
    """What was chosen for this installation; SANDUK_FOUR_EYES can only add to it.

    Whoever decides also sets their shell's environment, which is written down nowhere.
    """
    return is_pinned() or chosen() is True


def is_pinned() -> bool:
    """Whether the environment has it on, whatever was chosen."""
    return settings.SANDUK_FOUR_EYES is True


def chosen() -> bool | None:
    """What was chosen; None for nothing yet."""
    value = SiteSetting.objects.filter(name=NAME).values_list("value", flat=True).first()
    return value if isinstance(value, bool) else None


def choose(value: bool, *, actor: Any = None) -> None:
    """Keep a choice, and write down who made it. Raises Refusal where the environment has it on."""
    if is_pinned() and not value:
        raise Refusal("SANDUK_FOUR_EYES has it on, and no choice switches it off beside that")
    by = actor.get_username() if actor is not None else audit.account()
    with transaction.atomic():
        if chosen() == value:
            return
        facts = {"value": value, "changed_at": clock.now(), "changed_by": by}
        SiteSetting.objects.update_or_create(name=NAME, defaults=facts)
        audit.record("site.four-eyes", "site", actor=actor, on=value)
