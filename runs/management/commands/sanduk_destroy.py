"""`sanduk destroy`: everything this installation made, and, after a typed word, its records."""

from __future__ import annotations

import sys
from shlex import quote
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from runs import audit, credentials, dismantling
from runs.home import sample_directory
from runs.management.terminal import SandukCommand, add_engine_flags, removed_in_words
from runs.models import Run
from runs.refusal import Refusal

WORD = "destroy"


class Command(SandukCommand):
    help = (
        "Remove the containers, networks and images of this installation, on every engine its runs "
        "used (and that of --runtime), and, only when the word is typed, its records, reports and "
        "keys. Workdirs stay."
    )
    examples = ("destroy", "destroy --without my_package:Engine")

    def add_arguments(self, parser: CommandParser) -> None:
        add_engine_flags(parser)
        parser.add_argument(
            "--without",
            action="append",
            default=[],
            metavar="ENGINE",
            help="leave out an engine of earlier runs that is not there any more; repeatable",
        )

    def act(self, **options: Any) -> int:
        live = Run.objects.live().count()
        if live:
            raise Refusal(f"{live} live run(s): wait for them, or end them with sanduk clean --all")
        chosen = options["runtime"] or settings.SANDUK_RUNTIME
        used = dismantling.engines_used(chosen)
        if unused := sorted(set(options["without"]) - set(used)):
            raise Refusal(f"--without {unused[0]}: the engines are {', '.join(used)}")
        done = dismantling.clear_engines([name for name in used if name not in options["without"]])
        audit.record("destroy", "engines", removed=done.removed.total)
        for trouble in done.troubles:
            self.refuse(trouble)
        self.say(removed_in_words(done.removed))
        if done.troubles:
            self.say(
                "the records stay: without them nothing would know what is left there; an engine "
                "that is gone for good is left out by --without ENGINE"
            )
            return 2
        return self._state()

    def _state(self) -> int:
        home = settings.SANDUK_HOME
        runs = Run.objects.count()
        kept = ", and stored keys" if credentials.stored_in().exists() else ""
        self.say(f"{home} holds the records and reports of {runs} run(s){kept}")
        print(f"Type {WORD} to remove them for good: ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip() != WORD:
            self.say("they stay as they are")
            return 0
        left = dismantling.remove_state()
        if left:
            names = ", ".join(path.name for path in left[:10])
            self.say(f"removed, but for what is not sanduk's own: {names}")
        else:
            self.say(f"{home} is removed")
        if (sample := sample_directory()).is_dir():
            # somebody may have written into it since
            self.say(f"the sample assistant of the first run stays: rm -r {quote(str(sample))}")
        return 0
