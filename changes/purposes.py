"""Which runs belong to changes, for lists of runs and containers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from changes.models import Change, TestRun


def of_runs(uids: Collection[str]) -> dict[str, str]:
    """`change 3f2a9c0d11e4`, or that it is tests of one, by the run's id."""
    told: dict[str, str] = {}
    rows: Iterable[tuple[Any, Any]]
    for name in ("run__uid", "attempts__run__uid"):
        found = Change.objects.filter(**{f"{name}__in": uids}).order_by()
        rows = found.values_list(name, "uid")
        told |= {run: f"change {uid}" for run, uid in rows}
    tests = TestRun.objects.filter(run__uid__in=uids).order_by()
    rows = tests.values_list("run__uid", "attempt__change__uid")
    return told | {run: f"tests of change {uid}" for run, uid in rows}
