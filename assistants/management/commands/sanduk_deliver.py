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
        "out that it has arrived, say --arrived."
    )
    examples = ("deliver", "deliver 17", "deliver 17 --again --to ops", "deliver 17 --arrived")
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("item", nargs="?", type=whole(), metavar="ID")
        how = parser.add_mutually_exclusive_group()
        how.add_argument("--again", action="store_true", help="once more, on purpose")
        how.add_argument("--arrived", action="store_true", help="what is unknown has arrived")
        parser.add_argument("--to", default="", metavar="DESTINATION", help="--again only there")
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        if options["to"] and not options["again"]:
            raise Refusal("--to goes with --again")
        if options["item"] is None:
            if options["again"] or options["arrived"]:
                raise Refusal("--again and --arrived need the ID of an item")
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
        if options["arrived"]:
            destinations.arrived(item)
        else:
            if options["again"]:
                destinations.again(item, to=options["to"])
            destinations.ring(item)
            deliver_due(item=item.pk)
        rows = showing.deliveries(item)
        if options["json"]:
            self.print_json([showing.delivery_json(each) for each in rows])
        elif not rows:
            self.say(f"item {item.pk} has no destination: sanduk outbox --deliver CMD")
        for each in [] if options["json"] else rows:
            self.print(showing.delivery_line(each))
        last = {each.destination_id: each.state for each in rows}
        return 0 if rows and set(last.values()) <= {Delivery.State.SENT} else 1
