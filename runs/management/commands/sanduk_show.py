"""`sanduk show`: one run, with everything that is known of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db.models import Max

from relay.bodies import read_body, read_digests, read_outcome, removed_on
from runs import clock, narration, purposes, retention, shown, terms
from runs.duration import spoken
from runs.management.commands.sanduk_stop import one_run
from runs.management.numbers import whole
from runs.management.terminal import SandukCommand, add_json_flag
from runs.models import RelayCall, Run
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
            "--call", type=whole(), metavar="N", help="what call N sent, if it was kept"
        )
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        run = one_run(options["run"])
        if options["call"] is not None:
            return self._call(run, options["call"], as_json=options["json"])
        parts = [p for p in PARTS if options[p]]
        if options["json"]:
            self.print_json(_as_json(run, parts))
            return 0
        if not parts:
            self._facts(run)
        for part in parts or PARTS:
            getattr(self, f"_{part}")(run, headed=not parts)
        return 0

    def _call(self, run: Run, number: int, *, as_json: bool) -> int:
        """One call: the request as it was sent, if it was kept, and what became of it."""
        directory = retention.bodies_of(run)
        body, outcome = read_body(directory, number), read_outcome(directory, number)
        text = None if body is None else body.decode("utf-8", "replace")
        # a call that still goes on has a body before it has a row
        call = run.calls.filter(sequence=number).first()
        if call is None and text is None:
            raise Refusal(_no_such_call(run, number))
        why = _why_no_body(run, call, directory) if call and text is None else ""
        if as_json:
            row = run.calls.filter(sequence=number).values().first()
            self.print_json({"call": row, "body": text, "no_body": why, "outcome": outcome})
        elif call is not None and text is None:
            self.print(shown.call_line(call))
            self.print(f"  {visible(why)}")
        else:
            self.print(visible(text or "", lines=True))
            self.print(visible(json.dumps(outcome, indent=2, default=str), lines=True))
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
            *([("rules", rules)] if (rules := terms.as_flags(run.order)) else []),
            ("asked by", _asker(run)),
            *([("for", purpose)] if (purpose := purposes.of([run.uid]).get(run.uid)) else []),
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
        if headed and not run.report and run.order.get("report_instruction") is False:
            return  # nobody asked for one
        self._head("report", headed=headed)
        if run.report:
            self.print(visible(run.report, lines=True).rstrip())
        else:
            self.print(f"  {run.report_state or 'none'}")


def _no_such_call(run: Run, number: int) -> str:
    last = run.calls.aggregate(last=Max("sequence"))["last"]
    there = f"its last one is {last}; sanduk show {run.uid} --calls" if last else "it made none"
    return f"run {run.uid} has no call {number}: {there}"


def _why_no_body(run: Run, call: RelayCall, directory: Path) -> str:
    """Why what a call sent is not there. Raises Refusal for a run that kept no bodies."""
    number = call.sequence
    if not run.order.get("log_bodies"):
        raise Refusal(
            f"call {number} of run {run.uid} was not kept; run with --log-bodies to keep bodies"
        )
    if day := removed_on(directory, number):
        return f"its body was removed by retention on {day}"
    if number in read_digests(directory):
        return "its body made room for later ones"
    if call.refusal:
        return "the relay refused it, so no body was sent on, and none was kept"
    if not directory.is_dir():
        return f"its body is gone with {directory}, which is not there any more"
    if not call.bytes_in:
        return "it sent no body"
    return f"its body is not in {directory}: the log had stopped, or somebody removed it"


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


def _asker(run: Run) -> str:
    if run.requested_by is not None:
        return f"{run.requested_by.get_username()}, on the web"
    return run.requested_as or run.get_trigger_display().lower()
