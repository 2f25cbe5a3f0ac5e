"""Which rows a person may see: what is nobody's, their own, and what its owner lets them see."""

from __future__ import annotations

from typing import Any

from django.db.models import Q

EVERY = "assistants.view_every_assistant"


def seen_by(user: Any, way: str = "") -> Q:
    """The rows of assistants that a person may see; what has no assistant is among them.

    Args:
        way: the lookup that leads to the assistant; "" where the rows are assistants.
    """
    if user.has_perm(EVERY):
        return Q()
    to = f"{way}__" if way else ""
    granted = user.assistant_grants.order_by().values("assistant")
    return (
        Q(**{f"{to}owner__isnull": True})
        | Q(**{f"{to}owner": user})
        | Q(**{f"{to}pk__in": granted})
    )
