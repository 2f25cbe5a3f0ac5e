"""Where a wakeup meets memory, outbox and delivery."""

from __future__ import annotations

from assistants import delivery, memory, noticing, outbox, reminding
from assistants.config import Config
from assistants.models import Assistant, MemorySnapshot, Wakeup
from runs import clock


def before_wakeup(assistant: Assistant, wakeup: Wakeup) -> None:
    """Keep the memory as it is, and put reviewed memory in place where that was asked for."""
    memory.before_wakeup(assistant, wakeup)


def after_wakeup(assistant: Assistant, wakeup: Wakeup) -> None:
    """Keep what the wakeup made of the memory. Once: it may be asked for again after a kill."""
    if not wakeup.snapshots.filter(moment=MemorySnapshot.Moment.AFTER).exists():
        memory.after_wakeup(assistant, wakeup)


def write_item(wakeup: Wakeup, body: str, config: Config) -> None:
    """Put what the wakeup wants to say in the outbox. Call it in the transaction that ends it."""
    outbox.write(wakeup, body, config)


def deliver_due() -> None:
    """Send what is approved and due, reminders and notices; what nobody decided in time expires.

    It may take as long as the slowest receiver. Behind that, what assistants remembered that were
    removed long ago goes.
    """
    delivery.deliver_due(clock.now())
    reminding.remind_due()
    noticing.send_due()
    memory.forget_old()
