"""A batch's money: what one of its runs may spend is set aside in the database before it starts."""

from __future__ import annotations

from django.db.models import F, Q, Sum
from django.db.models.functions import Greatest

from changes.models import Batch, Change
from runs.models import Run
from runs.order import Order

LEAST_USD = 0.000001  # what is less is nothing


class Exhausted(Exception):
    """Nothing is left of the batch's budget. The text says so with the figures."""


def reserve(change: Change, order: Order) -> float | None:
    """Set aside what this run may spend; None where nothing bounds it. Raises Exhausted.

    What is left is shared among the changes of the batch that still wait, and what one did not
    spend goes to the others. Call it in the transaction that writes the run down.
    """
    # one at a time per batch, where the database has no lock of its own for that
    batch = Batch.objects.select_for_update().filter(uid=change.batch).first()
    if batch is None or batch.total_budget_usd is None:
        return order.budget_usd
    ours = Change.objects.filter(batch=batch.uid)
    taken: float = ours.aggregate(total=Sum("reserved_usd", default=0.0))["total"]
    left = batch.total_budget_usd - taken
    if left < LEAST_USD:
        raise Exhausted(
            f"${taken:.2f} of the ${batch.total_budget_usd:.2f} for the batch are spent or set "
            "aside"
        )
    to_come = Q(state=Change.State.QUEUED) | Q(state=Change.State.RUNNING, run=None)
    waiting = ours.filter(to_come).exclude(pk=change.pk).count()
    wanted = left / (waiting + 1) if order.budget_usd is None else min(order.budget_usd, left)
    ours.filter(pk=change.pk).update(reserved_usd=F("reserved_usd") + wanted)
    return wanted


def settle(change: Change, run: Run | None) -> None:
    """Count what the ended run spent instead of what was set aside for it.

    Where what it spent is not known for sure, all that was set aside stays taken. Call it once a
    run, in the transaction that ends the attempt.
    """
    bounded = Batch.objects.filter(uid=change.batch, total_budget_usd__isnull=False).exists()
    if run is None or not bounded:
        return
    reserved = float(run.order.get("budget_usd") or 0.0)
    spent = max(reserved, run.spent_usd) if run.spent_is_lower_bound else run.spent_usd
    Change.objects.filter(pk=change.pk).update(
        reserved_usd=Greatest(F("reserved_usd") - reserved + spent, 0.0)
    )
