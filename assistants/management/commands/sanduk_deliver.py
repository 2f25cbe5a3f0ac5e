"""`sanduk deliver`: bring what was approved to its destinations now."""

from __future__ import annotations

import dataclasses
from typing import Any

from django.core.management.base import CommandParser

from assistants import destinations, outbox
from assistants import showing_items as showing
from assistants.delivery import deliver_due
from assistants.models import Delivery, OutboxItem
from runs.management.numbers import whole
from runs.management.terminal import SandukCommand, add_json_flag
from runs.refusal import Refusal


class Command(SandukCommand):
    help = (
        "Deliver all that is due, or one item without waiting for its next try. What ended as "
        "unknown, given up or sent goes out again only with --again, with a new key; if you found "
        "out that it has arrived, say --arrived. --to leaves every other destination alone."
    )
    examples = (
        "deliver",
        "deliver 17",
        "deliver 17 --again --to ops",
        "deliver 17 --arrived --to me",
    )
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("item", nargs="?", type=whole(), metavar="ID")
        how = parser.add_mutually_exclusive_group()
        how.add_argument("--again", action="store_true", help="once more, on purpose")
        how.add_argument("--arrived", action="store_true", help="what is unknown has arrived")
        parser.add_argument("--to", default="", metavar="DESTINATION", help="only there")
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        if options["item"] is None:
            if options["again"] or options["arrived"] or options["to"]:
                raise Refusal("--again, --arrived and --to need the ID of an item")
            return self._all(as_json=options["json"])
        item = outbox.items().filter(pk=options["item"]).first()
        if item is None:
            raise Refusal(f"there is no item {options['item']}; sanduk outbox lists them")
        if item.state not in (OutboxItem.State.APPROVED, OutboxItem.State.DELIVERED):
            raise Refusal(f"item {item.pk} is {item.state}; only what was approved is delivered")
        return self._one(item, options)

    def _all(self, *, as_json: bool) -> int:
        done = deliver_due()
        if as_json:
            self.print_json(dataclasses.asdict(done))
        else:
            told = [
                f"{count} {name.replace('_', ' ')}"
                for name, count in dataclasses.asdict(done).items()
                if count
            ]
            self.say(", ".join(told) or "nothing was due")
        return 1 if done.failed or done.given_up or done.unknown else 0

    def _one(self, item: OutboxItem, options: dict[str, Any]) -> int:
        to = options["to"]
        if options["arrived"]:
            destinations.arrived(item, to=to)
        elif options["again"]:
            begun = destinations.again(item, to=to)
            deliver_due(item=item.pk, to=[each.destination.name for each in begun])
        else:
            names = [to] if to else []
            destinations.ring(item, to=names)
            deliver_due(item=item.pk, to=names)
        rows = [each for each in showing.deliveries(item) if to in ("", each.destination.name)]
        if to and not rows:
            raise Refusal(f"item {item.pk} has no delivery to {to}: sanduk outbox show {item.pk}")
        if options["json"]:
            self.print_json([showing.delivery_json(each) for each in rows])
        elif not rows:
            self.say(f"item {item.pk} has no destination: sanduk outbox --deliver CMD")
        for each in [] if options["json"] else rows:
            self.print(showing.delivery_line(each))
        last = {each.destination.name: each.state for each in rows}
        return 0 if rows and set(last.values()) <= {Delivery.State.SENT} else 1
