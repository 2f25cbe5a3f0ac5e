"""What waits for one person, of every kind: how much, and the changes among it."""

from __future__ import annotations

import datetime as dt
from typing import Any

import assistants.awaiting
from changes import awaiting
from changes.marks import with_marks
from runs import clock

SHOWN = 30  # changes
OLD = dt.timedelta(days=1)  # a decision that waits longer is marked


def count_for(user: Any) -> int:
    """Items, memories, changes and skills that this person may decide on, and has not yet."""
    return assistants.awaiting.count_for(user) + awaiting.count_for(user)


def changes_for(user: Any, *, is_strict: bool) -> dict[str, Any]:
    """Changes and skills that wait, how many of them for this person, and how many for others.

    Args:
        is_strict: whether four eyes are on.
    """
    found = awaiting.open_changes()
    looked_at = list(awaiting.judged(with_marks(found), user)[: awaiting.LOOKED_AT])
    mine = awaiting.changes_for(user, looked_at, is_strict=is_strict)
    rows = looked_at[:SHOWN]
    for change in rows:
        change.is_mine = change.pk in mine
        change.is_old = clock.now() - change.state_at > OLD
    skills = awaiting.open_skills().count()
    decides = user.has_perm("changes.decide_skill")
    many = len(looked_at) if len(looked_at) < awaiting.LOOKED_AT else found.count()
    return {
        "changes": rows,
        "skills": skills,
        "changes_mine": len(mine) + skills * decides,
        "changes_others": max(many - len(mine), 0) + skills * (not decides),
    }
