"""An assistant's money: what one wakeup may spend is set aside in the database before it runs."""

from __future__ import annotations

import datetime as dt

from django.db import transaction
from django.db.models import Sum

from assistants import schedules
from assistants.config import Config
from assistants.models import Assistant, Wakeup
from runs import clock
from runs.models import Run

LEAST_USD = 0.000001  # what is less is nothing


class Exhausted(Exception):
    """Nothing is left of the day's budget. The text says so with the figures."""


def reserve(wakeup: Wakeup, config: Config) -> float | None:
    """Set aside what this wakeup may spend; None where nothing bounds it. Raises Exhausted."""
    if config.daily_budget_usd is None:
        return config.budget_usd
    with transaction.atomic():
        # one at a time per assistant, where the database has no lock of its own for that
        assistant = Assistant.objects.select_for_update().get(pk=wakeup.assistant_id)
        spent = spent_today(assistant)
        left = config.daily_budget_usd - spent
        if left < LEAST_USD:
            raise Exhausted(
                f"${spent:.2f} of the day's ${config.daily_budget_usd:.2f} are spent or set aside"
            )
        wanted = left if config.budget_usd is None else min(config.budget_usd, left)
        Wakeup.objects.filter(pk=wakeup.pk).update(reserved_usd=wanted)
    return wanted


def spent_today(assistant: Assistant) -> float:
    """What its wakeups of this day, on the clock of its first schedule's zone, count for."""
    today = assistant.wakeups.filter(started_at__gte=_midnight(assistant))
    total: float = today.aggregate(total=Sum("reserved_usd", default=0.0))["total"]
    return total


def _midnight(assistant: Assistant) -> dt.datetime:
    first = assistant.schedules.first()
    zone = schedules.timing_of(first).zone if first else dt.UTC
    local = clock.now().astimezone(zone)
    return local.replace(hour=0, minute=0, second=0, microsecond=0).astimezone(dt.UTC)


def settled(wakeup: Wakeup, run: Run | None) -> float:
    """What an ended wakeup counts for: what it spent, or all it might have where that is unsure."""
    if run is None:
        return 0.0
    if run.spent_is_lower_bound:
        return max(wakeup.reserved_usd, run.spent_usd)
    return run.spent_usd
