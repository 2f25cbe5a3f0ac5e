"""`sanduk doctor`: whether everything is there, and, if asked, whether the boundary holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from runs.console import Terminal
from runs.installation import require_room
from runs.management.terminal import SandukCommand, add_json_flag
from runs.refusal import Refusal
from runs.visible import visible
from sanduk_site import doctor
from sanduk_site.boundary import posture, suite
from sanduk_site.boundary.probes import BY_NAME, Finding
from sanduk_site.doctor import Line

MARKS = {"ok": "ok", "note": "note", "wrong": "WRONG"}
VERDICTS = {"held": "held", "broken": "BROKEN", "not tried": "not tried"}
ONLY_BOUNDARY = {"agent": "--agent", "oci_runtime": "--oci-runtime", "probe": "--probe"}


class Command(SandukCommand):
    help = (
        "Look at everything this installation needs, and say what mends what is wrong: exit code "
        "1 then. With --boundary, try hostile probes in boxes made exactly as a run's, and say "
        "what holds: exit code 1 when something does not, or was not proved."
    )
    examples = (
        "doctor",
        "doctor --json",
        "doctor --boundary",
        "doctor --boundary --engine podman --agent codex",
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--boundary",
            action="store_true",
            help="try the boundary suite: half a minute, with boxes that are removed again",
        )
        parser.add_argument(
            "--engine",
            "--runtime",
            dest="engine",
            metavar="ENGINE",
            default="",
            help="docker, podman, apple or module:Class; default: the one that runs use",
        )
        parser.add_argument(
            "--agent",
            metavar="NAME",
            default="",
            help="with --boundary: whose image (the first that is built, else pi)",
        )
        parser.add_argument(
            "--oci-runtime",
            metavar="NAME",
            default="",
            help="with --boundary: such as runsc (gVisor)",
        )
        parser.add_argument(
            "--probe",
            action="append",
            default=[],
            metavar="NAME",
            help="with --boundary: try this one alone; repeatable",
        )
        parser.add_argument("-q", "--quiet", action="store_true", help="say only what is wrong")
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        if options["boundary"]:
            return self._boundary(**options)
        for name, flag in ONLY_BOUNDARY.items():
            if options[name]:
                raise Refusal(f"{flag} goes with --boundary")
        as_json, quiet = options["json"], options["quiet"]
        lines = doctor.progress_of(
            doctor.examined(options["engine"] or settings.SANDUK_RUNTIME),
            (lambda line: None) if as_json else lambda line: self._line(line, quiet=quiet),
        )
        wrong = [line for line in lines if line.state == "wrong"]
        if as_json:
            self.print_json({"works": not wrong, "checks": [line.as_data() for line in lines]})
        elif not quiet:
            self.say("all that runs need is there" if not wrong else f"{len(wrong)} wrong")
        return 1 if wrong else 0

    def _line(self, line: Line, *, quiet: bool) -> None:
        if quiet and line.state != "wrong":
            return
        self.print(f"{MARKS[line.state]:<5}  {line.name + ':':<17} {visible(line.sentence)}")
        if line.fix and line.state != "ok":
            self.print(f"{'':<5}  {'':<17} -> {visible(line.fix)}")

    # -- the boundary -----------------------------------------------------------------------------
    def _boundary(self, **options: Any) -> int:
        as_json, quiet = options["json"], options["quiet"]
        for name in options["probe"]:
            if name not in BY_NAME:
                raise Refusal(f"--probe {name}: there are {', '.join(BY_NAME)}")
        require_room()
        console = Terminal(quiet=quiet or as_json)
        tested = suite.chosen(options["engine"], options["agent"], options["oci_runtime"], console)
        made = suite.Suite(
            tested,
            (lambda finding: None) if as_json else lambda each: self._finding(each, quiet=quiet),
            console.progress,
            frozenset(options["probe"]),
        )
        findings = made.run()
        sentences = posture.statement(made)
        holds = not made.unmade and all(each.verdict != "broken" for each in findings)
        if as_json:
            self._print_boundary(tested, findings, sentences, holds=holds)
        else:
            self.print()
            for sentence in sentences:
                self.print(visible(sentence))
        return 0 if holds else 1

    def _finding(self, finding: Finding, *, quiet: bool) -> None:
        if quiet and finding.verdict != "broken":
            return
        self.print(f"{VERDICTS[finding.verdict]:<9}  {finding.name + ':':<15} {finding.sentence}")
        if finding.why:
            self.print(f"{'':<9}  {'':<15} -> {visible(finding.why)}")

    def _print_boundary(
        self, tested: suite.Tested, findings: Sequence[Finding], said: list[str], *, holds: bool
    ) -> None:
        facts = tested.facts
        self.print_json(
            {
                "holds": holds,
                "engine": {
                    "name": tested.name,
                    "version": facts.version,
                    "operating_system": facts.operating_system,
                    "rootless": facts.rootless,
                    "shares_kernel": not tested.has_own_kernel,
                },
                "agent": tested.agent,
                "probes": [each.as_data() for each in findings],
                "posture": said,
            }
        )
