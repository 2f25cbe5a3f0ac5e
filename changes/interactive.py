"""What a person's own session is: the agent's interface on their terminal, or a shell beside it."""

from __future__ import annotations

import msgspec

from changes import asking
from runs.order import Order
from runs.refusal import Refusal


def order_of(order: Order, *, seed: str = "", plain: bool = False) -> Order:
    """The order of a session: before the agent itself where it has an interface and a model.

    Args:
        order: of a shell, `tty` on a terminal and `pipe` off it.
        seed: the first message to the agent, as if the person had typed it.
        plain: a shell all the same.
    Raises:
        Refusal: the order cannot be run, or asks of an agent that is not started.
    """
    plan = asking.planned(order.task, order)
    if order.shell == "tty" and plan.agent.sits and plan.provider is not None and not plain:
        return msgspec.structs.replace(order, shell="agent", seed=seed)  # noqa: S604 - no process
    if order.asks:
        raise Refusal(
            "--no-skip-permissions is about an agent's own interface, and this is a shell: "
            f"{_why_a_shell(order, plan.agent.name, plain=plain, sits=plan.agent.sits)}"
        )
    return order


def _why_a_shell(order: Order, agent: str, *, plain: bool, sits: bool) -> str:
    if order.shell != "tty":
        return "there is no terminal"
    if plain:
        return "--plain says so"
    return "--no-network leaves the agent no model" if sits else f"{agent} is not started in one"
