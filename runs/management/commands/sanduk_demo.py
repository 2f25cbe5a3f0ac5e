"""`sanduk demo`: the whole idea in one run, with no key, no account and no network."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from runs import narration, workspace
from runs.console import Terminal
from runs.lifecycle import exit_code, run_here
from runs.management.commands.sanduk_show import VERDICTS
from runs.management.terminal import SandukCommand, add_engine_flags
from runs.models import Run
from runs.models.run import Outcome
from runs.order import Order
from runs.paths import expanded
from runs.plan import Plan, make_plan
from runs.visible import visible

TASK = "Look at every file in this directory and report what is there."
SAMPLES = {
    "shopping.txt": "dates\ncardamom\ncoffee\n",
    "greeting.py": 'print("marhaba")\n',
}


class Command(SandukCommand):
    help = "Run a real agent, sealed, on the rehearsal model, and show everything it left."
    examples = ("demo", "demo --agent claude")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--agent", default="pi", metavar="NAME", help="claude, codex or pi (pi)"
        )
        parser.add_argument("-w", "--workdir", default="work/demo", metavar="PATH")
        add_engine_flags(parser)

    def act(self, **options: Any) -> int:
        order = Order(
            task=TASK,
            workdir=str(expanded(options["workdir"], what="--workdir").absolute()),
            agent=options["agent"],
            provider="rehearsal",
            mode="sealed",
            runtime=options["runtime"],
            timeout_s=300,
            idle_timeout_s=120,
        )
        plan = make_plan(order)
        workspace.prepare(plan.workspace)
        _lay_out(plan)
        console = Terminal(quiet=options["quiet"])
        run = run_here(plan, console)
        for line in narration.closing(run):
            console.warn(line)
        self._show(run)
        return exit_code(run)

    def _show(self, run: Run) -> None:
        self.print(narration.last_word(run))
        if run.certificate:
            self.print(f"\nThe seal: {visible(str(run.certificate['headline']))}")
            for check in run.certificate["checks"]:
                verdict = VERDICTS[check["verdict"]]
                self.print(f"  {verdict:<4} {visible(str(check['sentence']))}")
        if run.report:
            self.print(f"\nThe report ({run.workspace}/REPORT.md):\n")
            self.print(visible(run.report, lines=True).rstrip())
        if run.outcome == Outcome.SUCCEEDED:
            self._next_steps(run)

    def _next_steps(self, run: Run) -> None:
        sanduk = _how_to_call()
        self.print("\nNext:")
        self.print(f"  {sanduk} show {run.uid}")
        self.print(
            f"  {sanduk} run --agent claude --provider rehearsal "
            f'-w {shlex.quote(_near(Path(run.workspace)))} "count the files here"'
        )
        self.print(
            f"  ANTHROPIC_API_KEY=… {sanduk} run --agent claude --provider anthropic "
            '-w ~/some/project "explain this project"'
        )


def _lay_out(plan: Plan) -> None:
    """Give the agent something to look at, as the owner of the directory."""
    place = plan.workspace
    for name, text in SAMPLES.items():
        path = place.path / name
        if not path.exists():
            path.write_text(text)
            if os.geteuid() == 0:
                os.chown(path, place.uid, place.gid)


def _how_to_call() -> str:
    """`sanduk` where a shell finds it, else the path that was used."""
    if shutil.which("sanduk"):
        return "sanduk"
    return _near(Path(sys.argv[0]).absolute())


def _near(path: Path) -> str:
    """The path as somebody would type it from here."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
