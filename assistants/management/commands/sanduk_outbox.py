"""`sanduk outbox`: what assistants want to say, where it stands, and where it went."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from assistants import destinations, outbox, reminding
from assistants import showing_items as showing
from assistants.delivery import deliver_due, program
from assistants.management import answers, elsewhere
from assistants.management.answers import Item, WholeItem
from assistants.management.elsewhere import HereOrThere
from assistants.models import Delivery, OutboxItem
from assistants.named import one_assistant
from runs.management.numbers import whole
from runs.management.terminal import add_json_flag
from runs.refusal import Refusal
from runs.site_login import Site
from runs.visible import visible

BODY_MAX = 2000  # characters in the list; `show` prints all of it


class Command(HereOrThere):
    help = (
        "List what assistants want to say, the newest last; `show ID` prints one whole, with its "
        "digest, findings, decisions and deliveries. --deliver gives each approved, undelivered "
        "item to a shell command once, the body on its standard input."
    )
    examples = (
        "outbox --pending",
        "outbox show 17",
        "outbox --undelivered --name daily --json",
        "outbox --deliver 'mail -s report me@example.com'",
    )
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", nargs="?", choices=("show",), help="one item, whole")
        parser.add_argument("item", nargs="?", type=whole(), metavar="ID")
        parser.add_argument("--pending", action="store_true", help="only what waits for approval")
        parser.add_argument(
            "--undelivered", action="store_true", help="only what is approved and not delivered"
        )
        parser.add_argument("--name", default="", metavar="ASSISTANT", help="only of this one")
        parser.add_argument("--limit", type=whole(), default=50, metavar="N", help="default: 50")
        parser.add_argument(
            "--deliver", default="", metavar="CMD", help="give each to this shell command, run in /"
        )
        add_json_flag(parser)
        super().add_arguments(parser)

    def act_there(self, site: Site, **options: Any) -> int:
        if options["deliver"]:
            raise elsewhere.nothing_there("--deliver")
        if options["action"]:
            if options["item"] is None:
                raise Refusal("outbox show needs the ID of an item; sanduk outbox lists them")
            found = site.get("outbox", options["item"])
            item = answers.read(site, WholeItem, found)
            if options["json"]:
                self.print_json(found)
            else:
                elsewhere.show(self, item)
            return 0
        asked = {name: options[name] for name in ("pending", "undelivered", "name")}
        found = site.get("outbox", **asked, limit=min(options["limit"], 1000))
        rows = answers.read(site, list[Item], found)
        if options["json"]:
            self.print_json(found)
            return 0
        if not rows:
            self.say("no such items")
        for each in rows:
            self.print(elsewhere.heading(each))
            self.print(visible(each.body.rstrip(), limit=BODY_MAX, lines=True))
        return 0

    def act_here(self, **options: Any) -> int:
        outbox.expire_due()
        if options["action"]:
            if options["item"] is None:
                raise Refusal("outbox show needs the ID of an item; sanduk outbox lists them")
            return self._show(options["item"], as_json=options["json"])
        found = outbox.items()
        if options["name"]:
            found = found.filter(assistant=one_assistant(options["name"]))
        if options["deliver"]:
            if options["pending"]:
                raise Refusal("--deliver takes what is approved; it goes without --pending")
            return self._deliver(found, options["deliver"], as_json=options["json"])
        states = [
            *([OutboxItem.State.PENDING] if options["pending"] else []),
            *([OutboxItem.State.APPROVED] if options["undelivered"] else []),
        ]
        if states:
            found = found.filter(state__in=states)
        rows = list(found.order_by("-created_at", "-pk")[: options["limit"]])[::-1]
        if options["json"]:
            self.print_json([showing.as_json(each) for each in rows])
        elif not rows:
            self.say("no such items")
        else:
            for each in rows:
                self._print_item(each)
            self._say_what_waits(found)
        return 0

    def _say_what_waits(self, found: Any) -> None:
        pending = found.filter(state=OutboxItem.State.PENDING)
        oldest = pending.order_by("created_at", "pk").first()
        if oldest is not None:
            self.say(reminding.waiting(pending.count(), oldest.created_at))

    def _print_item(self, item: OutboxItem) -> None:
        self.print(showing.heading(item))
        for line in showing.warnings(item):
            self.print(f"! {line}")
        if item.state == OutboxItem.State.APPROVED:
            for each in showing.deliveries(item):
                self.print(f"> {showing.delivery_line(each)}")
        body = item.body.rstrip()
        shown = visible(body, limit=BODY_MAX, lines=True)
        self.print(shown)
        if len(shown) == BODY_MAX and shown != body:
            self.print(f"(cut; all {len(body):,} characters: sanduk outbox show {item.pk})")

    def _show(self, pk: int, *, as_json: bool) -> int:
        item = outbox.items().filter(pk=pk).first()
        if item is None:
            raise Refusal(f"there is no item {pk}; sanduk outbox lists them")
        went = showing.deliveries(item)
        if as_json:
            rows = [showing.delivery_json(each) for each in went]
            self.print_json({**showing.as_json(item), "deliveries": rows})
            return 0
        self.print(showing.heading(item))
        for line in showing.warnings(item):
            self.print(f"! {line}")
        for line in showing.standing(item):
            self.print(f"  {line}")
        for each in went:
            self.print(f"> {showing.delivery_line(each)}")
            for line in each.output.rstrip().splitlines()[:20]:
                self.print(f"    {visible(line, limit=200)}")
        self.print("")
        self.print(visible(item.body.rstrip(), lines=True))
        return 0

    def _deliver(self, found: Any, command: str, *, as_json: bool) -> int:
        for word in program.misplaced([command]):
            self.say(f"it runs in /: {visible(word)} is {visible(str(Path('/', word)))} there")
        place = destinations.for_command(command)
        items = list(found.filter(state=OutboxItem.State.APPROVED).order_by("created_at", "pk"))
        rows = []
        for item in items:
            Delivery.objects.get_or_create(item=item, destination=place)
            destinations.ring(item, to=[place.name])
            deliver_due(item=item.pk, to=[place.name])
            last = Delivery.objects.filter(item=item, destination=place).order_by("number").last()
            if last is not None:
                rows.append(last)
        if as_json:
            self.print_json([{"id": each.item_id, **showing.delivery_json(each)} for each in rows])
        else:
            for each in rows:
                self.print(f"[{each.item_id}] {showing.delivery_line(each)}")
            if not rows:
                self.say("nothing was due")
        waiting = found.filter(state=OutboxItem.State.PENDING).count()
        if waiting:
            self.say(f"{waiting} more wait for approval: sanduk outbox --pending")
        return 0 if all(each.state == Delivery.State.SENT for each in rows) else 1
