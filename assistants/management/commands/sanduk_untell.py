"""`sanduk untell`: take messages back that have not been read."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from assistants import mailbox
from runs.management.numbers import whole
from runs.management.terminal import SandukCommand, add_json_flag
from runs.refusal import Refusal


class Command(SandukCommand):
    help = "Take messages back that have not been read. A wakeup under way may have seen them."
    examples = ("untell 17", "untell 17 18 --json")
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="+", type=whole(), metavar="ID", help="from sanduk inbox")
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        taken, refused = [], []
        for pk in dict.fromkeys(options["ids"]):
            try:
                taken.append(mailbox.take_back(pk))
            except Refusal as exc:
                refused.append(str(exc))
        if options["json"]:
            self.print_json({"withdrawn": [each.pk for each in taken], "refused": refused})
        else:
            for each in taken:
                self.print(f"message {each.pk} to {each.assistant.name} is taken back")
                if mailbox.is_being_read(each):
                    self.say(f"message {each.pk}: the wakeup under way has it, and may act on it")
        for why in refused:
            self.say(why)
        return 2 if refused and not taken else int(bool(refused))
