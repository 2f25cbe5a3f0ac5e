"""`sanduk destroy`: everything this installation made, and, after a typed word, its records."""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from runs import audit, dismantling
from runs.management.terminal import SandukCommand, add_engine_flags, removed_in_words
from runs.models import Run
from runs.refusal import Refusal

WORD = "destroy"


class Command(SandukCommand):
    help = (
        "Remove the containers, networks and images of this installation and, only when the word "
        "is typed, its records, reports and keys. Workdirs stay."
    )
    examples = ("destroy", "destroy --runtime podman")

    def add_arguments(self, parser: CommandParser) -> None:
        add_engine_flags(parser)

    def act(self, **options: Any) -> int:
        live = Run.objects.live().count()
        if live:
            raise Refusal(f"{live} live run(s): wait for them, or end them with sanduk clean --all")
        chosen = options["runtime"] or settings.SANDUK_RUNTIME
        done = dismantling.clear_engines(dismantling.engines_used(chosen))
        audit.record("destroy", "engines", removed=done.removed.total)
        for trouble in done.troubles:
            self.refuse(trouble)
        self.say(removed_in_words(done.removed))
        if done.troubles:
            self.say("the records stay: without them nothing would know what is left there")
            return 2
        return self._state()

    def _state(self) -> int:
        home = settings.SANDUK_HOME
        runs = Run.objects.count()
        self.say(f"{home} holds the records and reports of {runs} run(s), and stored keys")
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
        return 0
