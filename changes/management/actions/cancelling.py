"""`change cancel`: end an attempt that waits or is being made, wherever."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from changes import handover
from changes.management import as_data
from changes.management.acting import ChangeCommand, add_change, here
from changes.named import one_change
from runs.management.terminal import add_json_flag
from runs.refusal import Refusal


class Cancel(ChangeCommand):
    help = (
        "End an attempt that waits or is being made, whichever process makes it. An attempt that "
        "was there before is reviewed again. What waits for a person is rejected instead."
    )
    examples = ("change cancel 3f2a9c",)

    def add_arguments(self, parser: CommandParser) -> None:
        add_change(parser)
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        change = one_change(options["change"])
        became = handover.cancel(change.uid, here().name)
        if not became:
            raise Refusal(f"{change} is {change.state}: nothing of it goes on")
        change = one_change(change.uid)
        if options["json"]:
            self.print_json({**as_data.change(change), "cancelled": became})
        elif became == "asked":
            self.print(f"{change} is asked to end")
        else:
            self.print(f"{change} is cancelled; it had not begun")
        return 0
