"""What all runs together used, by day and provider, from the rows of their relayed calls."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.db.models import BigIntegerField, Count, F, FloatField, Q, Sum, Value
from django.db.models.functions import Coalesce, NullIf, TruncDate

from runs import clock
from runs.models import RelayCall


@dataclass(frozen=True, slots=True)
class Used:
    """Calls of one UTC day at one provider, of one model where they are told apart.

    Args:
        input_tokens: as the provider counts them; a call that did not say counts 0.
        cost_usd: what is known of the cost.
        untold: calls whose cost is not known, or only as a lower bound.
    """

    day: dt.date
    provider: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    untold: int


def today() -> dt.date:
    """The current day in UTC, in which providers bill."""
    return clock.now().astimezone(dt.UTC).date()


def used_since(first: dt.date, *, by_model: bool = False, provider: str = "") -> list[Used]:
    """Model calls that went out since `first` (a UTC day), newest day first.

    A call counts on the day it began. What the relay refused never went out, and the rehearsal
    model, which costs nothing, is left out.
    """
    since = dt.datetime.combine(first, dt.time(), dt.UTC)
    calls = RelayCall.objects.filter(started_at__gte=since, refusal="").exclude(protocol="")
    calls = calls.exclude(run__provider="rehearsal")
    if provider:
        calls = calls.filter(run__provider=provider)
    groups: dict[str, Any] = {
        "day": TruncDate("started_at", tzinfo=dt.UTC),
        "provider": F("run__provider"),
        "model": Coalesce(NullIf("model_answered", Value("")), "model_asked")
        if by_model
        else Value(""),
    }
    rows = calls.order_by().annotate(**groups).values(*groups).annotate(
        calls=Count("pk"),
        input_tokens=_sum("input_tokens", BigIntegerField()),
        output_tokens=_sum("output_tokens", BigIntegerField()),
        cost=_sum("cost_usd", FloatField()),
        untold=Count("pk", filter=Q(cost_kind__in=("unknown", "lower_bound", ""))),
    )  # fmt: skip
    found = [Used(*(row[name] for name in (*groups, *_FIGURES))) for row in rows]
    return sorted(found, key=lambda used: (-used.day.toordinal(), used.provider, used.model))


_FIGURES = ("calls", "input_tokens", "output_tokens", "cost", "untold")


def _sum(name: str, kind: Any) -> Coalesce:
    return Coalesce(Sum(name), Value(0, output_field=kind), output_field=kind)
