"""`sanduk runs`: the runs there were, newest first."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from runs import narration, shown
from runs.management.numbers import whole
from runs.management.terminal import SandukCommand, add_json_flag
from runs.models import Run
from runs.visible import visible

COLUMNS = ("RUN", "CREATED", "OUTCOME", "TOOK", "AGENT", "MODE", "COST", "TASK")

_limit = whole(high=100_000)


class Command(SandukCommand):
    help = "List runs, newest first."
    examples = ("runs", "runs --limit 100 --json", "runs --live")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--limit", type=_limit, default=20, metavar="N", help="at most N (20)")
        parser.add_argument("--live", action="store_true", help="only those that have not ended")
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        chosen = (
            Run.objects.exclude(state=Run.State.ENDED) if options["live"] else Run.objects.all()
        )
        found = list(chosen.defer("report", "final_text")[: options["limit"]])
        kinds = shown.cost_kinds(found)
        if options["json"]:
            self.print_json([narration.as_json(run, kinds[run.pk]) for run in found])
            return 0
        if not found and options["live"]:
            self.say("no run is going on; without --live those that have ended are listed")
        elif not found:
            self.say('no runs yet; try: sanduk run --agent pi --provider rehearsal "look around"')
        else:
            self.print_table(COLUMNS, [_cells(run, kinds[run.pk]) for run in found])
        return 0


def _cells(run: Run, cost_kind: str) -> tuple[str, ...]:
    return (
        run.uid,
        f"{run.created_at:%Y-%m-%d %H:%M}",
        narration.spoken_outcome(run),
        shown.took(run) or "-",
        visible(run.agent, limit=16),
        run.mode,
        shown.spent(run, cost_kind) or "-",
        visible(" ".join(run.task.split()), limit=50),
    )
