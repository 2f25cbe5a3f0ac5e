"""What a person's own session is: an agent's interface, or a shell."""

from __future__ import annotations

import msgspec
import pytest

from changes import asking, interactive
from runs.order import Order
from runs.refusal import Refusal

TERMINAL = Order(  # noqa: S604 - no process
    task="look around", agent="claude", provider="rehearsal", runtime="docker", shell="tty"
)


def but(**facts: object) -> Order:
    return msgspec.structs.replace(TERMINAL, **facts)


def test_on_a_terminal_a_person_sits_before_the_agent():
    order = interactive.order_of(TERMINAL, seed="why?")

    assert (order.shell, order.seed) == ("agent", "why?")
    assert msgspec.structs.replace(order, **{"shell": "tty", "seed": ""}) == TERMINAL


@pytest.mark.parametrize(
    ("order", "plain"),
    [
        (TERMINAL, True),
        (but(**{"shell": "pipe"}), False),
        (but(no_network=True, provider=""), False),
        (but(agent="pi"), False),
    ],
)
def test_otherwise_it_is_a_shell_and_a_flag_for_the_agent_is_refused(order: Order, plain: bool):
    assert interactive.order_of(order, seed="why?", plain=plain) == order

    with pytest.raises(Refusal, match="--no-skip-permissions is about an agent's own interface"):
        interactive.order_of(msgspec.structs.replace(order, asks=True), plain=plain)


def test_a_first_message_that_is_too_long_is_refused_before_anything_is_made():
    order = interactive.order_of(TERMINAL, seed="x" * 200_000)

    with pytest.raises(Refusal, match="at most 100,000 bytes"):
        asking.planned(order.task, order)
