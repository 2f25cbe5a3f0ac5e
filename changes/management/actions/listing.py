"""`change list`, `change status` and `change stats`."""

from __future__ import annotations

import datetime as dt
from statistics import median
from typing import Any

from django.core.management.base import CommandParser
from django.db.models import Count, Q, QuerySet

from changes.management import as_data, telling
from changes.management.acting import ChangeCommand, add_repository
from changes.models import Change, Skill, TestRun
from changes.models.change import State
from changes.named import one_batch, one_repository
from runs import clock, duration
from runs.management.numbers import whole
from runs.management.terminal import add_json_flag
from runs.refusal import Refusal
from runs.visible import visible

COLUMNS = ("CHANGE", "CREATED", "STATE", "FLAGS", "FILES", "LINES", "AGENT", "REPOSITORY", "TASK")
_LONGEST_S = 3650 * 86400


class List(ChangeCommand):
    help = "List changes, newest first."
    examples = (
        "change list",
        "change list --waiting",
        "change list --repo ~/code/app --state accepted --since 7d --json",
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_repository(parser)
        parser.add_argument("--waiting", action="store_true", help="only those in review")
        parser.add_argument("--state", choices=State.values, help="only those in this state")
        parser.add_argument("--batch", default="", metavar="BATCH", help="only of this batch")
        parser.add_argument(
            "--since", default="", metavar="DURATION", help="only those asked for so lately: 7d"
        )
        parser.add_argument(
            "--limit", type=whole(high=100_000), default=50, metavar="N", help="at most N (50)"
        )
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        if options["waiting"] and options["state"] not in (None, State.REVIEW):
            raise Refusal("--waiting means --state review; leave one of them out")
        found = _chosen(options)
        state = State.REVIEW if options["waiting"] else options["state"]
        if state:
            found = found.filter(state=state)
        if options["batch"]:
            found = found.filter(batch=one_batch(options["batch"]).uid)
        rows = list(found[: options["limit"]])
        counts = as_data.flag_counts(rows)
        if options["json"]:
            self.print_json([as_data.change(each, counts) for each in rows])
        elif rows:
            self.print_cells(COLUMNS, [_cells(each, counts) for each in rows])
        elif Change.objects.exists():
            self.say("no such changes")
        else:
            self.say('no changes yet; try: sanduk change run --repo PATH --task "what to do"')
        return 0


class Status(ChangeCommand):
    help = "What goes on now and what waits for a person, by repository; skills, too."
    examples = ("change status", "change status --repo ~/code/app --json")

    def add_arguments(self, parser: CommandParser) -> None:
        add_repository(parser)
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        found = _chosen(options).filter(
            state__in=(State.QUEUED, State.RUNNING, State.REVIEW, State.LANDING)
        )
        rows = list(found.order_by("repository__path", "created_at"))
        counts = as_data.flag_counts(rows)
        skills = Skill.objects.filter(state=Skill.State.PROPOSED)
        tests = TestRun.objects.filter(outcome="")
        if options["repo"]:
            repository = one_repository(options["repo"])
            skills = skills.filter(repository=repository)
            tests = tests.filter(attempt__change__repository=repository)
        if options["json"]:
            self.print_json(
                {"changes": [as_data.change(each, counts) for each in rows],
                 "skills_proposed": skills.count(), "tests_running": tests.count()}
            )  # fmt: skip
            return 0
        if rows:
            self.print_cells(COLUMNS, [_cells(each, counts) for each in rows])
        waiting = sum(each.state == State.REVIEW for each in rows)
        self.say(telling.waiting(waiting) if waiting else "no change waits for a person")
        if proposed := skills.count():
            many = "1 skill" if proposed == 1 else f"{proposed} skills"
            self.say(f"proposed for later agents: {many}; sanduk skills list")
        if running := tests.count():
            self.say(f"tests of {running} go on")
        return 0


class Stats(ChangeCommand):
    help = "How many changes became what, how long agents and people took, and what it cost."
    examples = ("change stats", "change stats --since 30d", "change stats --repo ~/code/app --json")

    def add_arguments(self, parser: CommandParser) -> None:
        add_repository(parser)
        parser.add_argument(
            "--since", default="", metavar="DURATION", help="only those asked for so lately: 30d"
        )
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        told = _figures(_chosen(options))
        if options["json"]:
            self.print_json(told)
            return 0
        if not told["changes"]:
            self.say("no such changes")
            return 0
        states = ", ".join(f"{many:,} {state}" for state, many in told["states"].items() if many)
        self.print(f"changes      {told['changes']:,}: {states}")
        decided = told["states"]["accepted"] + told["states"]["rejected"]
        if decided:
            share = told["states"]["accepted"] / decided
            self.print(f"decided      {decided:,}, {share:.0%} of them accepted")
        self.print(f"attempts     {told['attempts']:,}")
        if (took := told["review_s"]) is not None:
            self.print(f"in review    {duration.spoken(took)} (the middle one)")
        if told["tests"]:
            outcomes = (f"{many:,} {name}" for name, many in told["tests"].items())
            self.print(f"tests        {', '.join(outcomes).replace('_', ' ')}")
        self.print(f"cost         {as_data.cost(told['spent_usd'], told['spent_is_lower_bound'])}")
        if told["agents"]:
            self.print("")
            rows = [
                (name, *(f"{each[key]:,}" for key in ("changes", "accepted", "rejected")))
                for name, each in told["agents"].items()
            ]
            self.print_cells(("AGENT", "CHANGES", "ACCEPTED", "REJECTED"), rows)
        return 0


def _chosen(options: dict[str, Any]) -> QuerySet[Change]:
    found = Change.objects.select_related("repository", "attempt", "requested_by")
    if options["repo"]:
        found = found.filter(repository=one_repository(options["repo"]))
    if since := options.get("since"):
        lately_s = duration.seconds(since, what="--since", longest_s=_LONGEST_S)
        found = found.filter(created_at__gte=clock.now() - dt.timedelta(seconds=lately_s))
    return found


def _cells(change: Change, counts: dict[int, dict[str, int]]) -> tuple[str, ...]:
    attempt = change.attempt
    flags = counts.get(change.attempt_id or 0, {})
    grave = ", ".join(f"{many} {severity}" for severity, many in flags.items() if many)
    return (
        change.uid,
        f"{change.created_at:%Y-%m-%d %H:%M}",
        change.state,
        (grave or as_data.answer(attempt, flags)) if attempt else "-",
        f"{attempt.files:,}" if attempt else "-",
        f"+{attempt.added_lines:,} -{attempt.deleted_lines:,}" if attempt else "-",
        visible(change.agent or "-", limit=16),
        visible(change.repository.name, limit=24),
        visible(" ".join(change.task.split()), limit=50),
    )


def _figures(found: QuerySet[Change]) -> dict[str, Any]:
    plain = found.order_by()
    states = dict(plain.values_list("state").annotate(Count("pk")))
    agents = plain.values("agent").annotate(
        changes=Count("pk"),
        accepted=Count("pk", filter=Q(state=State.ACCEPTED)),
        rejected=Count("pk", filter=Q(state=State.REJECTED)),
    )
    of_tests = TestRun.objects.filter(attempt__change__in=plain).exclude(outcome="").order_by()
    decided = plain.filter(decided_at__isnull=False, attempt__isnull=False)
    waits = [
        (then - presented).total_seconds()
        for then, presented in decided.values_list("decided_at", "attempt__created_at")
        if then is not None
    ]
    usd, least = as_data.spent(plain)
    return {
        "changes": sum(states.values()),
        "states": {state: states.get(state, 0) for state in State.values},
        "attempts": plain.aggregate(many=Count("attempts"))["many"],
        "review_s": round(median(waits), 1) if waits else None,
        "tests": dict(of_tests.values_list("outcome").annotate(Count("pk"))),
        "spent_usd": round(usd, 6),
        "spent_is_lower_bound": least,
        "agents": {
            each["agent"] or "-": {key: each[key] for key in ("changes", "accepted", "rejected")}
            for each in agents.order_by("agent")
        },
    }
