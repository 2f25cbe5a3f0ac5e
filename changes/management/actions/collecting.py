"""`change gc`: what nobody needs any more."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from changes import collecting
from changes.management.acting import ChangeCommand
from runs.management.terminal import add_json_flag
from runs.visible import visible


class Gc(ChangeCommand):
    help = (
        "Remove clones that dead processes left, and what is kept of changes that were decided "
        f"on more than {collecting.KEPT_DAYS} days ago. Only of this installation; records and "
        "landed branches stay. What could not be listed is left alone."
    )
    examples = ("change gc --dry-run", "change gc --json")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would go; remove nothing"
        )
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        done = collecting.collect(dry_run=options["dry_run"])
        if options["json"]:
            self.print_json(
                {"gone": done.gone, "bytes": done.bytes, "troubles": done.troubles,
                 "dry_run": options["dry_run"]}
            )  # fmt: skip
            return 1 if done.troubles else 0
        for sentence in done.gone:
            self.print(visible(sentence))
        for trouble in done.troubles:
            self.say(trouble)
        what = "would go" if options["dry_run"] else "gone"
        many = f"{len(done.gone)} thing{'' if len(done.gone) == 1 else 's'}"
        self.say(f"{many} {what}, {done.bytes:,} bytes" if done.gone else "there is nothing to do")
        return 1 if done.troubles else 0
