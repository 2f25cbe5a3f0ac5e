"""What a row of a list of changes says beside the change itself."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, Subquery
from django.db.models.functions import Substr

from changes.models import RiskFlag, Skill, TestRun

TASK_BEGINS = 300  # characters


def with_marks(found: Any) -> Any:
    """What a row of a list says, in one question however many rows there are."""
    flags = RiskFlag.objects.filter(attempt=OuterRef("attempt"))
    weighty = Q(severity="high") | Q(severity="medium", line__gt=0)
    skills = Skill.objects.filter(attempt=OuterRef("attempt"), state=Skill.State.PROPOSED)
    tests = TestRun.objects.filter(attempt=OuterRef("attempt")).exclude(outcome="")
    last = tests.order_by("-ended_at", "-pk").values("outcome")[:1]
    return (
        found.select_related("repository", "attempt", "run")
        .defer("task", "order", "landing", "attempt__task", "attempt__results", "run__report",
               "run__task", "run__order")
        .annotate(
            begins=Substr("task", 1, TASK_BEGINS),
            flags=Count("attempt__flags", distinct=True),
            has_secret=Exists(flags.filter(weighty, category="secret")),
            is_grave=Exists(flags.filter(severity="high")),
            has_skills=Exists(skills),
            last_tests=Subquery(last),
        )
    )  # fmt: skip
