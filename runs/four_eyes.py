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
    """SANDUK_FOUR_EYES where it is set, else what was chosen for this installation, else no."""
    pinned: bool | None = settings.SANDUK_FOUR_EYES
    if pinned is not None:
        return pinned
    return chosen() is True


def chosen() -> bool | None:
    """What was chosen; None for nothing yet."""
    value = SiteSetting.objects.filter(name=NAME).values_list("value", flat=True).first()
    return value if isinstance(value, bool) else None


def choose(value: bool, *, actor: Any = None) -> None:
    """Keep a choice, and write down who made it. Raises Refusal where the environment decides."""
    if settings.SANDUK_FOUR_EYES is not None:
        raise Refusal("SANDUK_FOUR_EYES is set where the site runs, and decides alone")
    by = actor.get_username() if actor is not None else audit.account()
    with transaction.atomic():
        if chosen() == value:
            return
        facts = {"value": value, "changed_at": clock.now(), "changed_by": by}
        SiteSetting.objects.update_or_create(name=NAME, defaults=facts)
        audit.record("site.four-eyes", "site", actor=actor, on=value)
