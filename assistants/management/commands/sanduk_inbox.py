"""`sanduk inbox`: the messages that wait to be read, and those that were."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from assistants import showing_messages as showing
from assistants.management import answers
from assistants.management.answers import Message
from assistants.management.elsewhere import HereOrThere
from assistants.models import InboxMessage
from assistants.named import one_assistant
from runs.management.numbers import whole
from runs.management.terminal import add_json_flag
from runs.site_login import Site


class Command(HereOrThere):
    help = "List the messages that wait for assistants, oldest first."
    examples = ("inbox", "inbox --name daily-report --all", "inbox --json")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", default="", metavar="NAME", help="only this assistant's")
        parser.add_argument(
            "--all", action="store_true", help="the newest, those that were read or taken back too"
        )
        parser.add_argument(
            "--limit", type=whole(high=100_000), default=100, metavar="N", help="at most N (100)"
        )
        add_json_flag(parser)
        super().add_arguments(parser)

    def act_here(self, **options: Any) -> int:
        rows = InboxMessage.objects.all()
        if options["name"]:
            rows = rows.filter(assistant=one_assistant(options["name"]))
        found = showing.chosen(rows, everything=options["all"], limit=options["limit"])
        return self._print([showing.as_json(each) for each in found], **options)

    def act_there(self, site: Site, **options: Any) -> int:
        limit = min(options["limit"], 1000)
        found = site.get("inbox", name=options["name"], all=options["all"], limit=limit)
        answers.read(site, list[Message], found)
        return self._print(found, **options)

    def _print(self, rows: list[dict[str, Any]], **options: Any) -> int:
        if options["json"]:
            self.print_json(rows)
        elif not rows:
            self.say("no message is waiting" if not options["all"] else "no messages yet")
        else:
            self.print_table(showing.COLUMNS, [showing.cells(each) for each in rows])
        return 0
