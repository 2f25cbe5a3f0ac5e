"""What was spent: by day, assistant, provider, person and model, exact and "at least" apart."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import CharField, Count, F, Q, QuerySet, Sum, Value
from django.db.models.functions import Cast, Coalesce, Left, NullIf

from runs.models import RelayCall, Run
from runs.sight import seen_by
from runs.visible import visible


@dataclass(frozen=True, slots=True)
class Line:
    """One group. `exact_usd` is of what told its cost; `least_usd` of what told a part of it."""

    name: str
    runs: int
    calls: int
    tokens: int
    exact_usd: float
    least_usd: float
    unsure: int  # runs, or calls of a model, whose cost is not known whole

    @property
    def kind(self) -> str:
        return "lower_bound" if self.unsure else "exact"

    @property
    def usd(self) -> float:
        return self.exact_usd + self.least_usd


# the day as text is cut by the database itself, which for SQLite TruncDate is not
DAY = Left(Cast("created_at", CharField()), 10)


def _spoken(name: Any) -> str:
    return visible(str(name), limit=100) if name else "(none)"


_WHOLE = Q(spent_is_lower_bound=False)
_UNTOLD = Q(cost_kind__in=("unknown", "lower_bound", ""))
_GROUPS: dict[str, tuple[Any, Callable[[Any], str]]] = {
    "day": (DAY, str),
    "assistant": (F("wakeup__assistant__name"), _spoken),
    "provider": (F("provider"), _spoken),
    "agent": (F("agent"), _spoken),
    "person": (
        Coalesce(F("requested_by__username"), NullIf("requested_as", Value(""))),
        _spoken,
    ),
}
GROUPS = (*_GROUPS, "model")


def lines(group: str, first: dt.date, user: Any) -> list[Line]:
    """Every group since `first` (a UTC day); days in order, others by what they cost.

    A run counts on the day it was asked for; a model's call on the day it began. Sums are of
    all runs; of assistants only those are named, and counted, that this person may see.
    """
    if group == "model":
        return _of_models(first)
    field, spoken = _GROUPS[group]
    seen = seen_by(user, "wakeup__assistant") if group == "assistant" else Q()
    rows: QuerySet[Any, Any] = (
        Run.objects.filter(seen, created_at__gte=dt.datetime.combine(first, dt.time(), dt.UTC))
        .order_by()
        .annotate(group=field)
        .values("group")
        .annotate(
            number=Count("pk"),
            relayed=Sum("calls_relayed"),
            tokens=Sum("spent_tokens"),
            exact=Sum("spent_usd", filter=_WHOLE),
            least=Sum("spent_usd", filter=~_WHOLE),
            unsure=Count("pk", filter=~_WHOLE),
        )
    )
    found = [
        Line(
            spoken(row["group"]),
            row["number"],
            row["relayed"] or 0,
            row["tokens"] or 0,
            row["exact"] or 0.0,
            row["least"] or 0.0,
            row["unsure"],
        )
        for row in rows
    ]
    if group == "day":
        return sorted(found, key=lambda line: line.name)
    return sorted(found, key=lambda line: (-line.usd, line.name))


def _of_models(first: dt.date) -> list[Line]:
    """Of what went out: what the relay refused, and the rehearsal model, cost nothing."""
    since = dt.datetime.combine(first, dt.time(), dt.UTC)
    calls = RelayCall.objects.filter(started_at__gte=since, refusal="").exclude(protocol="")
    rows = (
        calls.exclude(run__provider="rehearsal")
        .order_by()
        .values("run__provider")
        .annotate(
            model=Coalesce(NullIf("model_answered", Value("")), "model_asked"),
            number=Count("pk"),
            tokens=Sum(Coalesce("input_tokens", 0) + Coalesce("output_tokens", 0)),
            exact=Sum("cost_usd", filter=~_UNTOLD),
            least=Sum("cost_usd", filter=_UNTOLD),
            unsure=Count("pk", filter=_UNTOLD),
        )
    )
    found = [
        Line(
            f"{_spoken(row['model'])} at {_spoken(row['run__provider'])}",
            0,
            row["number"],
            row["tokens"] or 0,
            row["exact"] or 0.0,
            row["least"] or 0.0,
            row["unsure"],
        )
        for row in rows
    ]
    return sorted(found, key=lambda line: (-line.usd, line.name))


def total(of: Iterable[Line]) -> Line:
    """All groups as one."""
    found = list(of)
    return Line(
        "in all",
        sum(line.runs for line in found),
        sum(line.calls for line in found),
        sum(line.tokens for line in found),
        sum(line.exact_usd for line in found),
        sum(line.least_usd for line in found),
        sum(line.unsure for line in found),
    )


WIDE, HIGH = 720, 120  # of the chart, in its own units


def bars(days: list[Line], first: dt.date, last: dt.date) -> dict[str, Any]:
    """A chart of days: what is exact as a full bar, "at least" on it as a dashed one."""
    known = {line.name: line for line in days}
    dates = [first + dt.timedelta(days=at) for at in range((last - first).days + 1)]
    most = max((line.usd for line in days), default=0.0)
    step = WIDE / len(dates)
    found = []
    for at, day in enumerate(dates):
        line = known.get(day.isoformat())
        exact = HIGH * line.exact_usd / most if line and most else 0.0
        least = HIGH * line.least_usd / most if line and most else 0.0
        if line is None:
            continue
        found.append(
            {
                "x": round(at * step + 1, 1),
                "width": round(max(step - 2, 1), 1),
                "y": round(HIGH - exact, 1),
                "height": round(exact, 1),
                "least_y": round(HIGH - exact - least, 1),
                "least_height": round(least, 1),
                "words": f"{day:%d %b}: {'at least ' if line.unsure else ''}${line.usd:,.2f}",
            }
        )
    return {"bars": found, "most": most, "first": first, "last": last}
