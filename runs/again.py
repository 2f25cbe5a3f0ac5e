"""Doing a run once more, exactly as it was ordered, at the word of a person on the web."""

from __future__ import annotations

from typing import Any

import msgspec

from runs import asking
from runs.models import Run
from runs.order import Order, restored
from runs.refusal import Refusal


def repeat(run: Run, *, by: Any, allow: str = "", seen: str = "") -> Run:
    """Queue a new run with the same task and order.

    The order, with its directories, was given on this host; the web only repeats it.

    Args:
        by: the site user who asks.
        allow: one more `HOST:PORT` that it may reach; whether they may say that is asked before.
        seen: `asking.digest` of the order they read; "" where they read none.

    Raises Refusal when it cannot be repeated so, or would be refused now.
    """
    order = order_of(run, allow=allow)
    if seen and seen != asking.digest(order):
        raise Refusal("it is not what the page showed; look again")
    noted = {"allowed": allow} if allow else {}
    return asking.ask(order, by=by, again=run.uid, **noted)


def order_of(run: Run, *, allow: str = "") -> Order:
    """What a run was ordered as, for once more. Raises Refusal when it cannot be repeated so."""
    if run.state != Run.State.ENDED:
        raise Refusal(f"run {run.uid} has not ended yet")
    if getattr(run, "wakeup", None) is not None:
        raise Refusal("a wakeup's run is repeated by waking its assistant")
    if run.trigger == Run.Trigger.CHANGE:
        raise Refusal("a change's run has its own directory, which is gone; revise or test it")
    if run.mode == "open" or run.order.get("shell"):
        raise Refusal("open mode and shells are started at a terminal only")
    try:
        order = restored(run.order, run.task)
    except msgspec.ValidationError:
        raise Refusal(f"the order of run {run.uid} is of another version of sanduk") from None
    if not allow or allow in order.allow_hosts:
        return order
    return msgspec.structs.replace(order, allow_hosts=(*order.allow_hosts, allow))
