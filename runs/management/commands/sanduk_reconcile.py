"""`sanduk reconcile`: what the records say beside what the engine says, and repair of one run."""

from __future__ import annotations

import asyncio
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from runs.engines import get_engine
from runs.engines.base import LABEL_INSTALL, LABEL_RUN
from runs.installation import install_id
from runs.lease import owner_is
from runs.management.commands.sanduk_stop import one_run
from runs.management.terminal import SandukCommand, add_engine_flags, add_json_flag
from runs.models import Run
from runs.reconcile import reconcile, repair
from runs.refusal import Refusal

OWNERS = {
    "alive": "its process lives",
    "gone": "its process is gone",
    "unknown": "its process is on another machine, or cannot be looked up",
}


class Command(SandukCommand):
    help = "Compare live runs with the engine's containers; end what is lost, or repair one run."
    examples = ("reconcile --dry-run", "reconcile", "reconcile 3f2a9c")
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", nargs="?", metavar="RUN", help="end this one, whoever holds it")
        parser.add_argument("--dry-run", action="store_true", help="only show both sides")
        add_engine_flags(parser)
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        engine = get_engine(options["runtime"] or settings.SANDUK_RUNTIME or None)
        if options["run"] and not options["dry_run"]:
            return self._repair(one_run(options["run"]))
        rows = _both_sides(asyncio.run(engine.containers({LABEL_INSTALL: install_id()})))
        if options["json"]:
            self.print_json(rows)
        else:
            for row in rows:
                self.print(f"{row['run']}  {row['record']:<9} {row['containers']} container(s)  "
                           f"{row['standing']}")  # fmt: skip
            if not rows:
                self.say("no live run and no container: both sides agree")
        if options["dry_run"]:
            return 0
        done = reconcile()
        for uid in done.ended:
            self.say(f"run {uid} had lost its process; it is ended as interrupted")
        for trouble in done.troubles:
            self.say(trouble)
        return 1 if done.troubles else 0

    def _repair(self, run: Run) -> int:
        if not run.is_live:
            raise Refusal(f"run {run.uid} has ended; sanduk stop removes what it may have left")
        if owner_is(run.lease_owner) == "alive":
            raise Refusal(f"run {run.uid} is alive; end it with: sanduk stop {run.uid}")
        repair(run)
        self.say(f"run {run.uid} is ended as interrupted, and nothing of it is left")
        return 0


def _both_sides(containers: list[Any]) -> list[dict[str, Any]]:
    counts: dict[str, int] = {}
    for each in containers:
        uid = each.labels.get(LABEL_RUN, "?")
        counts[uid] = counts.get(uid, 0) + 1
    rows = []
    for run in Run.objects.live():
        standing = OWNERS[owner_is(run.lease_owner)]
        found = counts.pop(run.uid, 0)
        rows.append(
            {"run": run.uid, "record": run.state, "containers": found, "standing": standing}
        )
    kept = set(Run.objects.exclude(kept_container="").values_list("uid", flat=True))
    for uid, count in counts.items():
        known = Run.objects.filter(uid=uid).values_list("state", flat=True).first()
        standing = "kept by --keep" if uid in kept else "left over; sanduk stop removes it"
        rows.append(
            {"run": uid, "record": known or "none", "containers": count, "standing": standing}
        )
    return rows
