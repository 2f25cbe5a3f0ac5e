"""`sanduk clean`: remove containers and networks that are left over or were kept."""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from runs import audit, retention
from runs.engines import get_engine
from runs.management.terminal import SandukCommand, add_engine_flags
from runs.models import Run
from runs.reconcile import reconcile, sweep

PATIENCE_S = 40


class Command(SandukCommand):
    help = "Remove leftover and kept containers and networks; work, reports and live runs stay."
    examples = ("clean", "clean --all")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--all", action="store_true", help="cancel live runs as well")
        add_engine_flags(parser)

    def act(self, **options: Any) -> int:
        if options["all"]:
            self._cancel_live()
        engine = get_engine(options["runtime"] or settings.SANDUK_RUNTIME or None)
        done = sweep(engine, kept_too=True)
        bodies = retention.apply()
        for trouble in (*done.troubles, *bodies.troubles):
            self.refuse(trouble)
        live = Run.objects.live().count()
        if not options["quiet"] and (done.removed or not done.troubles):
            spared = f"; {live} live run(s) left alone (--all ends them too)" if live else ""
            self.say(f"{done.removed} leftover(s) removed{spared}")
        if not options["quiet"] and bodies.calls:
            size = max(bodies.size // 10**6, 1)
            self.say(f"the bodies of {bodies.calls} call(s) removed by retention, {size} MB")
        return 2 if done.troubles or bodies.troubles else 0

    def _cancel_live(self) -> None:
        for uid in Run.objects.live().values_list("uid", flat=True):
            Run.objects.request_stop(uid, audit.account())
            audit.record("run.stop", f"run:{uid}", by="clean --all")
        deadline = time.monotonic() + PATIENCE_S
        while Run.objects.live().exists() and time.monotonic() < deadline:
            time.sleep(0.2)
            reconcile()
