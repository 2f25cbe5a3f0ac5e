"""What a list says of memories that wait: their risks, and which are superseded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assistants.memory import trust
from assistants.memory.comparing import earlier_among
from assistants.memory.scanning import marks
from assistants.models import MemorySnapshot
from runs import secret_scan


@dataclass(frozen=True, slots=True)
class Marks:
    """Args:
    has_secret: something in it looks like a secret.
    is_unchecked: not all of it could be looked at, which is no all-clear.
    is_superseded: a newer memory that says something else is in force.
    """

    has_secret: bool
    is_unchecked: bool
    is_superseded: bool


def marked(snapshots: Iterable[MemorySnapshot]) -> dict[int, Marks]:
    """The marks of each, by its number, in one question however many they are."""
    asked = list(snapshots)
    if not asked:
        return {}
    rows: dict[int, list[MemorySnapshot]] = {each.assistant_id: [] for each in asked}
    for each in MemorySnapshot.objects.filter(assistant__in=rows).defer("left_out", "reason"):
        rows[each.assistant_id].append(each)
    now = {pk: trust.in_force_among(of_one) for pk, of_one in rows.items()}
    held, problems = secret_scan.held_secrets()
    found = {}
    for each in asked:
        kinds = marks(each, earlier_among(each, rows[each.assistant_id]), held, problems)
        superseded = trust.is_superseded(each, now[each.assistant_id])
        found[each.pk] = Marks("secret" in kinds, "unknown" in kinds, superseded)
    return found
