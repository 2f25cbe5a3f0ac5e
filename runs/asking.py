"""Leaving a run to the worker: written down, noted in the audit, rung for."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from django.db import transaction

from runs import audit, bells, lifecycle
from runs.admission import require_memory
from runs.installation import require_room
from runs.models import Run
from runs.order import Order
from runs.overlap import refuse_overlap, writable_in
from runs.plan import Plan, make_plan


def ask(order: Order, *, by: Any, **noted: str) -> Run:
    """Queue a run for a person on the web.

    Args:
        by: the site user who asks.
        noted: what the audit keeps beside it.

    Raises Refusal when it would be refused now.
    """
    plan = make_plan(order)
    with transaction.atomic():
        made = queued(plan, trigger=Run.Trigger.WEB, requested_by=by)
        audit.record("run.start", f"run:{made.uid}", actor=by, **noted)
    return made


def queued(plan: Plan, *, trigger: str = Run.Trigger.TERMINAL, requested_by: Any = None) -> Run:
    """Write the run down and ring for it. It waits there while the worker has no room.

    Raises Refusal when it would be refused now.
    """
    require_room()
    require_memory(plan.order.memory)
    with transaction.atomic():
        refuse_overlap(str(plan.workspace.path), writable_in(plan.order.stored()))
        made = lifecycle.submit(plan, trigger=trigger, requested_by=requested_by)
        bells.enqueue(made)
    return made


def digest(order: Order) -> str:
    """What a person has seen when they agree to it: equal for equal orders alone."""
    return hashlib.sha256(msgspec.json.encode(order, order="deterministic")).hexdigest()
