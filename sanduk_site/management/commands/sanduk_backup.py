"""`sanduk backup`: all that this installation cannot get elsewhere, in one file."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from runs.management.terminal import SandukCommand, add_json_flag
from runs.paths import expanded
from runs.visible import visible
from sanduk_site import backup


class Command(SandukCommand):
    help = (
        "Write a backup while everything goes on: the database as of one moment, memory, what "
        "changes are made of, what containers printed, and the last hash of the audit record. It "
        "is read back whole before it gets its name, and replaces no file. Of a PostgreSQL "
        "database it says what makes one."
    )
    examples = (
        "backup /srv/backups",
        "backup sanduk.tar.gz --with-credentials",
        "restore sanduk.tar.gz --dry-run",
    )
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("target", metavar="FILE|DIR", help="in a DIR it gets a name with time")
        parser.add_argument(
            "--with-credentials",
            action="store_true",
            help="keys and who is signed in, too: whoever can read the file then has them",
        )
        parser.add_argument(
            "--without-database",
            action="store_true",
            help="only what is beside a database of PostgreSQL's",
        )
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        made = backup.make(
            expanded(options["target"], what="FILE|DIR"),
            with_secrets=options["with_credentials"],
            with_database=not options["without_database"],
        )
        manifest = made.manifest
        if options["json"]:
            self.print_json(
                {
                    "file": str(made.path.absolute()),
                    "bytes": made.size,
                    "made_at": manifest.made_at,
                    "files": len(manifest.files),
                    "with_credentials": manifest.with_secrets,
                    "left_out": list(manifest.left_out),
                    "audit_trouble": made.trouble,
                }
            )
        else:
            self.print(visible(str(made.path)))
            size = f"{made.size / 10**6:,.1f} MB"
            self.say(f"{len(manifest.files):,} files in {size}, read back as they were written")
            for each in manifest.left_out:
                self.say(f"not in it: {each}")
        if made.trouble:
            self.say(f"the audit record does not stand, here and in it: {made.trouble}")
        return 0
