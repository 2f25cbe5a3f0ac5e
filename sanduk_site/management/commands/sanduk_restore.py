"""`sanduk restore`: make a backup the state of an installation that has none yet."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from runs.management.terminal import SandukCommand, add_json_flag
from runs.paths import expanded
from sanduk_site import backup
from sanduk_site.backup_file import Manifest


class Command(SandukCommand):
    help = (
        "Put a backup into SANDUK_HOME, which must be empty or not there. It is checked whole "
        "before anything of it is in place; one of a later version is refused, an older one is "
        "brought to this one. What was on its way out when it was made is then for a person to "
        "decide. --dry-run checks it and changes nothing."
    )
    examples = (
        "restore sanduk-20261130-080000.tar.gz --dry-run",
        "restore sanduk-20261130-080000.tar.gz",
    )
    keeps_state = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE")
        parser.add_argument("--dry-run", action="store_true", help="check the file, nothing else")
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        path = expanded(options["file"], what="FILE")
        if options["dry_run"]:
            manifest, trouble = backup.verify(path)
            self._tell(manifest, options["json"], "could be restored", {"audit_trouble": trouble})
            if trouble:
                self.say(f"the audit record in it does not stand: {trouble}")
            return 0
        manifest, doubtful = backup.restore(path)
        self._tell(
            manifest, options["json"], f"is in {settings.SANDUK_HOME} now", {"unknown": doubtful}
        )
        if doubtful:
            self.say(f"{doubtful} deliveries may have gone out since: sanduk outbox --undelivered")
        self.say("nothing wakes before a worker is started: sanduk up")
        return 0

    def _tell(
        self, manifest: Manifest, as_json: bool, words: str, more: dict[str, str | int]
    ) -> None:
        if as_json:
            facts = {"made_at": manifest.made_at, "version": manifest.version,
                     "files": len(manifest.files), "left_out": list(manifest.left_out)}  # fmt: skip
            self.print_json(facts | more)
            return
        self.print(f"the backup of {manifest.made_at}, made by {manifest.version}, {words}")
        for each in manifest.left_out:
            self.say(f"not in it: {each}")
