"""`sanduk stop`: cancel runs by name; without one, stop what belongs to no live run."""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from runs import audit
from runs.engines import get_engine
from runs.management.terminal import SandukCommand, add_engine_flags
from runs.models import Run
from runs.reconcile import reconcile, sweep
from runs.refusal import Refusal

PATIENCE_S = 40


class Command(SandukCommand):
    help = "Cancel the named runs and wait for them to end. Bare: stop leftovers, never a live run."
    examples = ("stop 3f2a9c", "stop")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "runs", nargs="*", metavar="RUN", help="ids, or the first letters of one"
        )
        parser.add_argument(
            "--no-wait", action="store_true", help="ask, and do not wait for the end"
        )
        add_engine_flags(parser)

    def act(self, **options: Any) -> int:
        if not options["runs"]:
            return self._leftovers(options)
        chosen = [one_run(word) for word in options["runs"]]
        code = 0
        asked: list[str] = []
        for run in chosen:
            answer = Run.objects.request_stop(run.uid, audit.account())
            if answer:
                audit.record("run.stop", f"run:{run.uid}")
            if answer == "asked":
                asked.append(run.uid)
            elif answer == "cancelled":
                self.print(f"{run.uid}  cancelled before it started")
            else:
                self.say(f"run {run.uid} has already ended ({run.outcome})")
                code = 1
        if options["no_wait"]:
            return code
        return max(code, self._wait(asked))

    def _wait(self, uids: list[str]) -> int:
        deadline = time.monotonic() + PATIENCE_S
        left = set(uids)
        while left and time.monotonic() < deadline:
            for run in Run.objects.filter(uid__in=left, state=Run.State.ENDED):
                self.print(f"{run.uid}  {run.outcome}")
                left.discard(run.uid)
            if left:
                time.sleep(0.2)
                reconcile()
        for uid in sorted(left):
            self.say(f"run {uid} was asked to stop and has not ended yet; sanduk show {uid}")
        return 1 if left else 0

    def _leftovers(self, options: dict[str, Any]) -> int:
        engine = get_engine(options["runtime"] or settings.SANDUK_RUNTIME or None)
        done = sweep(engine)
        for trouble in done.troubles:
            self.refuse(trouble)
        live = Run.objects.live().count()
        if not options["quiet"] and (done.removed or not done.troubles):
            spared = f"; {live} live run(s) left alone" if live else ""
            self.say(f"{done.removed} leftover(s) removed{spared}")
        return 2 if done.troubles else 0


def one_run(word: str) -> Run:
    """The run with this id, or the only one whose id begins so. Raises Refusal."""
    found = list(Run.objects.filter(uid__startswith=word)[:3]) if word.isalnum() else []
    if not found:
        raise Refusal(f"there is no run {word!r}; sanduk runs lists them")
    if len(found) > 1 and found[0].uid != word:
        raise Refusal(f"{word!r} begins the ids of several runs; give more letters")
    return found[0]
