"""`sanduk show`: one run, with everything that is known of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db.models import Max

from relay.bodies import read_body, read_digests, read_outcome, removed_on
from runs import clock, narration, retention, shown
from runs.duration import spoken
from runs.management.commands.sanduk_stop import one_run
from runs.management.terminal import SandukCommand, add_json_flag
from runs.models import Run
from runs.refusal import Refusal
from runs.visible import visible

PARTS = ("trace", "calls", "egress", "seal", "report")
VERDICTS = {"closed": "ok", "open": "OPEN", "unknown": "could not check"}


class Command(SandukCommand):
    help = "Show a run: facts, trace, calls, seal certificate, report."
    examples = ("show 3f2a9c", "show 3f2a9c --report", "show 3f2a9c --trace --json")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", metavar="RUN", help="its id, or the first letters of it")
        for part in PARTS:
            parser.add_argument(f"--{part}", action="store_true", help=f"only the {part}")
        parser.add_argument(
            "--call", type=int, metavar="N", help="what call N sent, if it was kept"
        )
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        run = one_run(options["run"])
        if options["call"] is not None:
            return self._body(run, options["call"])
        parts = [p for p in PARTS if options[p]]
        if options["json"]:
            self.print_json(_as_json(run, parts))
            return 0
        if not parts:
            self._facts(run)
        for part in parts or PARTS:
            getattr(self, f"_{part}")(run, headed=not parts)
        return 0

    def _body(self, run: Run, number: int) -> int:
        """One kept request as it was sent, and its outcome."""
        directory = retention.bodies_of(run)
        body = read_body(directory, number)
        if body is None:
            return self._without_body(run, number, directory)
        self.print(visible(body.decode("utf-8", "replace"), lines=True))
        outcome = read_outcome(directory, number)
        self.print(visible(json.dumps(outcome, indent=2, default=str), lines=True))
        return 0

    def _without_body(self, run: Run, number: int, directory: Path) -> int:
        """What is known of a call whose body is not there, and why it is not."""
        if not run.order.get("log_bodies"):
            raise Refusal(
                f"call {number} of run {run.uid} was not kept; run with --log-bodies to keep bodies"
            )
        call = run.calls.filter(sequence=number).first()
        if call is None:
            raise Refusal(f"run {run.uid} has no call {number}; sanduk show {run.uid} --calls")
        if day := removed_on(directory, number):
            why = f"its body was removed by retention on {day}"
        elif number in read_digests(directory):
            why = "its body made room for later ones"
        else:
            why = f"it sent no body that was kept in {directory}"
        self.print(shown.call_line(call))
        self.print(f"  {visible(why)}")
        return 0

    def _facts(self, run: Run) -> None:
        self.print(narration.last_word(run))
        if run.reason:
            self.print(f"  {visible(run.reason)}")
        for name, value in (
            ("task", visible(" ".join(run.task.split()), limit=200)),
            ("agent", f"{run.agent} on {run.provider or 'no model'}{_model(run)}"),
            ("mode", run.mode),
            ("image", f"{run.image} ({run.engine})"),
            ("workdir", run.workspace),
            ("asked by", run.requested_as),
            ("created", f"{run.created_at:%Y-%m-%d %H:%M:%S} UTC"),
            *_standing(run),
        ):
            self.print(f"  {name:<9} {visible(value)}")

    def _head(self, text: str, *, headed: bool) -> None:
        if headed:
            self.print(f"\n{text}")

    def _trace(self, run: Run, *, headed: bool) -> None:
        self._head("trace", headed=headed)
        for event in run.events.iterator(chunk_size=500):
            self.print(shown.event_line(event))

    def _calls(self, run: Run, *, headed: bool) -> None:
        self._head("calls", headed=headed)
        for call in run.calls.iterator(chunk_size=500):
            self.print(shown.call_line(call))
        if not run.calls.exists():
            self.print("  none")

    def _egress(self, run: Run, *, headed: bool) -> None:
        attempts = run.egress_attempts.all()
        if headed and not attempts:
            return
        self._head("ways out that were tried", headed=headed)
        for each in attempts.iterator(chunk_size=500):
            self.print(shown.attempt_line(each))
        if not attempts:
            self.print("  none")

    def _seal(self, run: Run, *, headed: bool) -> None:
        self._head("seal certificate", headed=headed)
        if not run.certificate:
            self.print("  none: " + ("no relay in this mode" if run.mode in ("open", "no-network")
                                     else "the run ended before its probe answered"))  # fmt: skip
            return
        self.print(f"  {visible(str(run.certificate.get('headline', '')))}")
        for check in run.certificate.get("checks", ()):
            verdict = VERDICTS.get(check.get("verdict", ""), "?")
            self.print(f"  {verdict:<15} {visible(str(check.get('sentence', '')))}")

    def _report(self, run: Run, *, headed: bool) -> None:
        self._head("report", headed=headed)
        if run.report:
            self.print(visible(run.report, lines=True).rstrip())
        else:
            self.print(f"  {run.report_state or 'none'}")


def _model(run: Run) -> str:
    return f", {run.model}" if run.model and run.model != run.provider else ""


def _standing(run: Run) -> list[tuple[str, str]]:
    """The sign of life of a live run; the time to the first model call of any run."""
    rows = []
    if run.first_call_s is not None:
        rows.append(("started", f"first model call after {spoken(run.first_call_s)}"))
    if run.is_live:
        now = clock.now()
        for name, moment in (
            ("output", run.events.exclude(kind="step").aggregate(at=Max("at"))["at"]),
            ("calls", run.calls.aggregate(at=Max("ended_at"))["at"]),
        ):
            ago = f"last {spoken((now - moment).total_seconds())} ago" if moment else "none yet"
            rows.append((name, ago))
    return rows


def _as_json(run: Run, parts: list[str]) -> dict[str, Any]:
    found = narration.as_json(run)
    if not parts or "trace" in parts:
        found["trace"] = list(run.events.values("sequence", "at", "kind", "text", "detail"))
    if not parts or "calls" in parts:
        found["relay_calls"] = list(run.calls.values())
    if not parts or "egress" in parts:
        found["egress_attempts"] = list(run.egress_attempts.values())
    if not parts or "seal" in parts:
        found["certificate"] = run.certificate
    return found
