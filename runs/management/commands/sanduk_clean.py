"""`sanduk clean`: remove containers and networks that are left over or were kept."""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from runs import audit, retention
from runs.engines import get_engine
from runs.leftovers import Removed
from runs.management.terminal import (
    SandukCommand,
    add_engine_flags,
    add_json_flag,
    removed_in_words,
)
from runs.models import Run
from runs.reconcile import reconcile, sweep

PATIENCE_S = 40


class Command(SandukCommand):
    help = "Remove leftover and kept containers and networks; work, reports and live runs stay."
    examples = ("clean", "clean --all")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--all", action="store_true", help="cancel live runs as well")
        add_engine_flags(parser)
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        ended = self._cancel_live() if options["all"] else []
        engine = get_engine(options["runtime"] or settings.SANDUK_RUNTIME or None)
        done = sweep(engine, kept_too=True)
        bodies = retention.apply()
        for trouble in (*done.troubles, *bodies.troubles):
            self.refuse(trouble)
        live = Run.objects.live().count()
        if options["json"]:
            self.print_json(
                {
                    "ended_runs": ended,
                    "removed": done.removed.as_json(),
                    "removed_bodies": {"calls": bodies.calls, "bytes": bodies.size},
                    "live_runs": live,
                }
            )
        elif not options["quiet"]:
            if done.removed.total or not done.troubles:
                self.say(_in_words(done.removed, ended, live, all_too=options["all"]))
            if bodies.calls:
                size = max(bodies.size // 10**6, 1)
                self.say(f"the bodies of {bodies.calls} call(s) removed by retention, {size} MB")
        return 2 if done.troubles or bodies.troubles else 0

    def _cancel_live(self) -> list[str]:
        """Have every live run ended; returns those that ended, by whomever it was asked."""
        asked = list(Run.objects.live().values_list("uid", flat=True))
        for uid in asked:
            Run.objects.request_stop(uid, audit.account())
            audit.record("run.stop", f"run:{uid}", by="clean --all")
        deadline = time.monotonic() + PATIENCE_S
        while Run.objects.live().exists() and time.monotonic() < deadline:
            time.sleep(0.2)
            reconcile()
        ended = Run.objects.filter(uid__in=asked, state=Run.State.ENDED)
        return list(ended.values_list("uid", flat=True))


def _in_words(removed: Removed, ended: list[str], live: int, *, all_too: bool) -> str:
    parts = [f"{len(ended)} live run(s) ended"] if ended else []
    if removed.total or not ended:
        parts.append(removed_in_words(removed))
    if live:
        why = "have not ended yet" if all_too else "left alone (--all ends them too)"
        parts.append(f"{live} live run(s) {why}")
    return "; ".join(parts)
