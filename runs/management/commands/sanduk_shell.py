"""`sanduk shell`: a person instead of the agent, in the same box."""

from __future__ import annotations

import signal
import sys
from typing import Any

from django.core.management.base import CommandParser

from runs import keys, narration
from runs.console import BesideShell, Terminal
from runs.lifecycle import exit_code, run_here
from runs.management.commands.sanduk_run import order_from
from runs.management.run_flags import add_shell_flags
from runs.management.terminal import SandukCommand, add_engine_flags
from runs.models import Run
from runs.models.run import Outcome
from runs.plan import make_plan

# what `run` asks of the agent itself, or of its result
NOT_ASKED: dict[str, Any] = {
    "task_file": None,
    "no_report_instruction": True,
    "effort": None,
    "max_turns": None,
    "allowed_tools": "",
    "permission_mode": None,
    "bare": False,
    "idle_timeout": "off",
    "keep": False,
}
TASKS = {"tty": "a shell on a terminal", "pipe": "commands from standard input"}


class Command(SandukCommand):
    help = (
        "Open a shell in the container an agent would get: same image, limits, seal and relay. "
        "Off a terminal it reads commands from standard input. Its exit code is the shell's."
    )
    examples = (
        "shell --agent pi --provider rehearsal",
        "shell --agent claude --no-network -w ~/code/app",
        "shell --agent pi --no-network < commands.sh",
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_shell_flags(parser)
        add_engine_flags(parser)

    def act(self, **options: Any) -> int:
        shell = "tty" if sys.stdin.isatty() and sys.stdout.isatty() else "pipe"
        plan = make_plan(order_from({**NOT_ASKED, **options, "shell": shell, "task": TASKS[shell]}))
        if plan.provider is not None:
            keys.provider_key(plan.provider)  # a missing one is told before anything is made
        console = (BesideShell if shell == "tty" else Terminal)(quiet=options["quiet"])
        run = run_here(plan, console)
        # it is over: a late Ctrl-C may not cost the last lines or change the exit code
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return self._finish(run, console, quiet=options["quiet"])

    def _finish(self, run: Run, console: Terminal, *, quiet: bool) -> int:
        if by_itself := _ended_by_itself(run):
            lines = [line for line in narration.closing(run) if run.reason not in line]
        else:
            lines = narration.closing(run)
        for line in lines:
            console.warn(line)
        if not quiet:
            self.say(narration.last_word(run))
        return (run.agent_exit_code or 0) if by_itself else exit_code(run)


def _ended_by_itself(run: Run) -> bool:
    """Whether the shell's own exit code is how this ended."""
    ended = run.state == Run.State.ENDED and run.agent_exit_code is not None
    return ended and run.outcome in (Outcome.SUCCEEDED, Outcome.FAILED)
