"""Items, destinations and commands for the tests of outbox and deliveries."""

from __future__ import annotations

import importlib
from typing import Any

from assistants import outbox
from assistants.config import Config
from assistants.delivery.parcel import Parcel
from assistants.models import Assistant, Delivery, Destination, OutboxItem
from runs import clock
from runs.models import Decision
from runs.verdicts import Person
from tests.factories import make_assistant, make_wakeup

BODY = "größe\n$(touch /tmp/never) `id` ; \x1b[2J"


def parcel(body: str = BODY) -> Parcel:
    return Parcel(
        assistant="daily",
        item=7,
        run="r-1",
        key="k" * 32,
        number=1,
        created_at=clock.now(),
        sha256=outbox.digest_of(body),
        body=body,
    )


def make_item(assistant: Assistant | None = None, body: str = "hello", **config: Any) -> OutboxItem:
    """What a wakeup of this assistant wrote; it needs no approval unless `hold` is given."""
    config.setdefault("hold", False)
    assistant = assistant or make_assistant()
    wakeup = make_wakeup(assistant, state="ended")
    return outbox.write(wakeup, body, Config(**config))


def make_destination(name: str, kind: str, *assistants: Assistant, **config: Any) -> Destination:
    timeout_s = config.pop("timeout_s", 20)
    found = Destination.objects.create(name=name, kind=kind, config=config, timeout_s=timeout_s)
    found.assistants.add(*assistants)
    return found


def delivery_to(destination: Destination, *, number: int = 1) -> Delivery:
    return Delivery.objects.get(destination=destination, number=number)


def approve(item: OutboxItem, person: Person, **how: Any) -> outbox.Standing:
    return outbox.decide(item.pk, Decision.Verdict.APPROVE, person, **how)


def reject(item: OutboxItem, person: Person, reason: str = "no") -> outbox.Standing:
    return outbox.decide(item.pk, Decision.Verdict.REJECT, person, reason=reason)


def act(name: str, *words: str) -> int:
    """Run one command in this process, as a terminal would; its exit code."""
    module = importlib.import_module(f"assistants.management.commands.sanduk_{name}")
    command = module.Command()
    parser = command.create_parser("sanduk", f"sanduk_{name}")
    return command.guarded(**vars(parser.parse_args(list(words))))
