"""`sanduk logs`: what a run does, line by line, while it does it or afterwards."""

from __future__ import annotations

import json
import time
from typing import Any

from django.core.management.base import CommandParser

from relay.bodies import read_digests
from runs import narration, retention, shown
from runs.management.commands.sanduk_stop import one_run
from runs.management.terminal import SandukCommand, as_text
from runs.models import Run
from runs.printing import reader_left
from runs.reconcile import reconcile
from runs.refusal import Refusal

LOOK_S = 0.5
_OF_EVENT = ("sequence", "at", "kind", "text", "detail")  # as `show --trace --json`
RECONCILE_S = 5.0  # a run whose process died is noticed by nobody else


class Command(SandukCommand):
    help = (
        "Print a run's trace, or its relayed calls; without RUN those of the newest live or last."
    )
    examples = ("logs", "logs --follow", "logs 3f2a9c --calls", "logs --follow --json")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "run", nargs="?", default="", metavar="RUN", help="its id, or the first letters of it"
        )
        parser.add_argument(
            "-f", "--follow", action="store_true", help="go on until the run has ended"
        )
        parser.add_argument(
            "--calls",
            action="store_true",
            help="a line for each call of the relay, with a digest of its body where it was kept",
        )
        parser.add_argument("--json", action="store_true", help="one JSON object a line on stdout")

    def act(self, **options: Any) -> int:
        run = one_run(options["run"]) if options["run"] else newest()
        if not options["run"]:
            self.say(f"run {run.uid}: {narration.spoken_outcome(run)}")
        show = (_Calls if options["calls"] else _Trace)(run, as_json=options["json"])
        looked = time.monotonic()
        while True:
            # asked before the rows are read: what was written before the end is then in them
            run.refresh_from_db(fields=["state"])
            for line in show.fresh():
                self.print(line)
            if reader_left(self.out) or not options["follow"] or not _goes_on(run):
                break
            time.sleep(LOOK_S)
            if time.monotonic() - looked > RECONCILE_S:
                reconcile()
                looked = time.monotonic()
        run.refresh_from_db()
        if options["follow"]:
            self.say(narration.last_word(run))
        elif not show.last:
            self.say("nothing yet" if _goes_on(run) else "nothing")
        return 0


def newest() -> Run:
    """The newest run that goes on, else the newest of all. Raises Refusal when there is none."""
    found = Run.objects.exclude(state=Run.State.ENDED).first() or Run.objects.first()
    if found is None:
        raise Refusal('no runs yet; try: sanduk run --agent pi --provider rehearsal "look around"')
    return found


def _json(row: dict[str, Any]) -> str:
    return json.dumps(row, default=as_text)


def _goes_on(run: Run) -> bool:
    return run.state != Run.State.ENDED


class _Trace:
    def __init__(self, run: Run, *, as_json: bool) -> None:
        self.last = 0
        self._run, self._as_json = run, as_json

    def fresh(self) -> list[str]:
        lines = []
        for event in self._run.events.filter(sequence__gt=self.last).iterator(chunk_size=500):
            row = {name: getattr(event, name) for name in _OF_EVENT}
            lines.append(_json(row) if self._as_json else shown.event_line(event))
            self.last = event.sequence
        return lines


class _Calls:
    def __init__(self, run: Run, *, as_json: bool) -> None:
        self._as_json = as_json
        self.last = 0  # the highest primary key: calls are stored in the order they end
        self._run = run
        self._bodies = retention.bodies_of(run)

    def fresh(self) -> list[str]:
        calls = list(self._run.calls.filter(pk__gt=self.last).order_by("pk"))
        digests = read_digests(self._bodies) if calls else {}
        lines = []
        for call in calls:
            digest = digests.get(call.sequence, "")
            if self._as_json:
                row = {field.attname: getattr(call, field.attname) for field in call._meta.fields}
                lines.append(_json({**row, "sent": digest}))
            else:
                lines.append(shown.call_line(call) + (f" | sent {digest}" if digest else ""))
            self.last = call.pk
        return lines
