"""The figures of runs that go on: their own columns are written when they end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from django.db.models import Count, Q, Sum

from runs.models import RelayCall, Run
from runs.templatetags import evidence
from runs.visible import visible

R = TypeVar("R", bound=Run)
_PRICED = Q(cost_kind__in=("exact", "reported"))


def so_far(runs: Iterable[R]) -> list[R]:
    """The runs, the live ones with the sums of the calls that are written down. Not to be saved."""
    chosen = list(runs)
    live = {run.pk: run for run in chosen if run.state != Run.State.ENDED}
    rows = RelayCall.objects.filter(run__in=live.values()).order_by().values("run_id")
    sums = rows.annotate(
        usd=Sum("cost_usd", default=0),
        tokens=Sum("input_tokens", default=0) + Sum("output_tokens", default=0),
        unpriced=Count("pk", filter=~_PRICED & Q(refusal="") & ~Q(protocol="")),
    )
    for row in sums:
        run = live[row["run_id"]]
        run.spent_usd = max(run.spent_usd, row["usd"])
        run.spent_tokens = max(run.spent_tokens, row["tokens"])
        run.spent_is_lower_bound = run.spent_is_lower_bound or row["unpriced"] > 0
    return chosen


def told(run: Run) -> dict[str, Any]:
    """What the head of a run's page says in figures, as plain text."""
    least = "≥ " if run.spent_is_lower_bound else ""
    is_unknown = run.spent_is_lower_bound and not run.spent_usd
    refused = f", {run.calls_refused:,} refused" if run.calls_refused else ""
    return {
        "chip": evidence.chip(run.outcome or run.state),
        "since": run.started_at.isoformat(timespec="seconds") if run.started_at else "",
        "cost": "unknown" if is_unknown else f"{least}${run.spent_usd:,.4f}",
        "tokens": f"{least}{run.spent_tokens:,}",
        "calls": f"{run.calls_relayed:,}{refused}",
        "seal": visible(str(run.certificate.get("headline", ""))),
        "stands": stands(run),
    }


def stands(run: Run) -> str:
    """How far it is, as one word to compare: when it is another, more than figures has changed."""
    marks = (run.claimed_at, run.started_at, run.first_call_at, run.stop_requested_at, run.ended_at)
    there = "".join(str(int(mark is not None)) for mark in marks)
    return f"{run.state}-{there}{int(bool(run.certificate))}"
