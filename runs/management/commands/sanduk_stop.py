"""`sanduk stop`: cancel runs by name; without one, stop what belongs to no live run."""

from __future__ import annotations

import re
import time
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from runs import audit
from runs.engines import get_engine
from runs.management.terminal import (
    SandukCommand,
    add_engine_flags,
    add_json_flag,
    removed_in_words,
)
from runs.models import Run
from runs.reconcile import reconcile, sweep
from runs.refusal import Refusal

PATIENCE_S = 40
_ID = re.compile("[0-9a-f]{4,12}")


class Command(SandukCommand):
    help = "Cancel the named runs and wait for them to end. Bare: stop leftovers, never a live run."
    examples = ("stop 3f2a9c", "stop")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "runs", nargs="*", default=[], metavar="RUN", help="ids, or the first letters of one"
        )
        parser.add_argument(
            "--no-wait", action="store_true", help="ask, and do not wait for the end"
        )
        add_engine_flags(parser)
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        if not options["runs"]:
            return self._leftovers(options)
        self._as_json = options["json"]
        chosen = [one_run(word) for word in options["runs"]]
        rows = [_asked(run) for run in chosen]
        waiting = {run.uid for run, row in zip(chosen, rows, strict=True) if row["asked"]}
        for row in rows:
            self._tell(row, waits=row["asked"] and not options["no_wait"])
        if not options["no_wait"]:
            waiting -= self._wait(waiting, rows)
        if options["json"]:
            self.print_json(rows)
        late = waiting if not options["no_wait"] else set()
        for uid in sorted(late):
            self.say(f"run {uid} was asked to stop and has not ended yet; sanduk show {uid}")
        return 1 if late or not all(row["asked"] or row["cancelled"] for row in rows) else 0

    def _tell(self, row: dict[str, Any], *, waits: bool) -> None:
        if not row["asked"] and not row["cancelled"]:
            self.say(f"run {row['run']} has already ended ({row['outcome']})")
        elif not waits and not self._as_json:
            told = "cancelled before it started" if row["cancelled"] else "asked to stop"
            self.print(f"{row['run']}  {told}")

    def _wait(self, uids: set[str], rows: list[dict[str, Any]]) -> set[str]:
        """Wait for these runs, and put into their rows how they ended; returns those that did."""
        deadline = time.monotonic() + PATIENCE_S
        ended: set[str] = set()
        while uids - ended and time.monotonic() < deadline:
            for run in Run.objects.filter(uid__in=uids - ended, state=Run.State.ENDED):
                ended.add(run.uid)
                for row in rows:
                    if row["run"] == run.uid:
                        row |= {"state": run.state, "outcome": run.outcome}
                if not self._as_json:
                    self.print(f"{run.uid}  {run.outcome}")
            if uids - ended:
                time.sleep(0.2)
                reconcile()
        return ended

    def _leftovers(self, options: dict[str, Any]) -> int:
        engine = get_engine(options["runtime"] or settings.SANDUK_RUNTIME or None)
        done = sweep(engine)
        for trouble in done.troubles:
            self.refuse(trouble)
        live = Run.objects.live().count()
        if options["json"]:
            self.print_json({"removed": done.removed.as_json(), "live_runs": live})
        elif not options["quiet"] and (done.removed.total or not done.troubles):
            spared = f"; {live} live run(s) left alone" if live else ""
            self.say(f"{removed_in_words(done.removed)}{spared}")
        return 2 if done.troubles else 0


def _asked(run: Run) -> dict[str, Any]:
    """Ask one run to stop. `cancelled`: it had not started; neither: it had ended already."""
    answer = Run.objects.request_stop(run.uid, audit.account())
    if answer:
        audit.record("run.stop", f"run:{run.uid}")
    run.refresh_from_db(fields=["state", "outcome"])
    return {
        "run": run.uid,
        "asked": answer == "asked",
        "cancelled": answer == "cancelled",
        "state": run.state,
        "outcome": run.outcome,
    }


def one_run(word: str) -> Run:
    """The run with this id, or the only one whose id begins so. Raises Refusal."""
    found = list(Run.objects.filter(uid__startswith=word)[:3]) if word.isalnum() else []
    if not found:
        hint = f"; a change is shown by sanduk change show {word}" if _ID.fullmatch(word) else ""
        raise Refusal(f"there is no run {word!r}; sanduk runs lists them{hint}")
    if len(found) > 1 and found[0].uid != word:
        raise Refusal(f"{word!r} begins the ids of several runs; give more letters")
    return found[0]
