"""What an ended wakeup means for the next ones: back-off, disabling, waiting, trying again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from django.db.models import F, OuterRef, Subquery

from assistants import schedules
from assistants.config import Config
from assistants.models import Assistant, Schedule, Wakeup
from runs import clock
from runs.models import Run
from runs.models.run import Outcome as RunOutcome
from runs.outcome import spoken
from runs.own_words import Words, repeated

DAY = dt.timedelta(days=1)
LONGEST_LIMIT = 7 * DAY  # what a provider, or an agent in its name, may make us wait
SHORTEST_LIMIT = dt.timedelta(minutes=15)  # where it does not say until when
AGAIN_AT_MOST = 3  # interrupted wakeups in a row that are tried once more
USUAL_INTERVAL = dt.timedelta(minutes=30)
_LAST = "; the last: "
BY_HOST = "this host could not run it: "  # how the reason of such a slot begins

W = Wakeup.Outcome
_OF_RUN = {
    RunOutcome.SUCCEEDED: W.SUCCEEDED,
    RunOutcome.INTERRUPTED: W.INTERRUPTED,
    RunOutcome.RATE_LIMITED: W.RATE_LIMITED,
    RunOutcome.CANCELLED: W.CANCELLED,
}
FAILURES = (W.FAILED, W.BROKEN)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a wakeup ended, and why, in words."""

    outcome: str
    reason: str = ""
    resets_at: dt.datetime | None = None  # of a provider's limit


def of_run(run: Run) -> Verdict:
    """What a run's end means for its wakeup. What the agent exited with plays no part."""
    if run.refused_by_host:
        return Verdict(W.MISSED, f"{BY_HOST}{run.reason}")
    outcome = _OF_RUN.get(RunOutcome(run.outcome), W.FAILED)
    prefix = _named(run)
    reason = f"{prefix}{run.reason}" if run.reason else prefix.removesuffix(": ")
    return Verdict(outcome, reason, run.rate_limit_resets_at)


def _named(run: Run) -> str:
    """What stands before a run's reason where the outcome of a wakeup does not say it."""
    plain = run.outcome in (RunOutcome.FAILED, *_OF_RUN)
    return "" if plain else f"{spoken(run.outcome)}: "


def words_of(wakeup: Wakeup) -> Words:
    """Whose words the reason of an ended wakeup is made of."""
    run = wakeup.run
    if run is not None:
        prefix = BY_HOST if run.refused_by_host else _named(run)
        return repeated(wakeup.reason, prefix, run.outcome, run.reason)
    if wakeup.outcome == W.GATE:
        begun, mark, printed = wakeup.reason.partition(": ")
        return Words(begun + mark, printed)
    return Words(wakeup.reason)


def words_of_disabling(reason: str, last: Wakeup | None) -> Words:
    """The same of why an assistant was disabled.

    Args:
        last: its last wakeup that failed.
    """
    begun, mark, tail = reason.partition(_LAST)
    if not mark:
        return Words(reason)
    if last is None or not tail or not last.reason.startswith(tail):
        return Words(begun + mark, tail)  # of an earlier one: whose it is cannot be told
    said = words_of(last)
    own, quoted = tail[: len(said.own)], tail[len(said.own) :][: len(said.quoted)]
    return Words(begun + mark + own, quoted, tail[len(own) + len(quoted) :])


def last_failed(assistants: Iterable[Assistant]) -> dict[int, Wakeup]:
    """The last failed wakeup of each, by the assistant's primary key."""
    failed = Wakeup.objects.filter(assistant=OuterRef("pk"), outcome__in=FAILURES).order_by("-pk")
    chosen = Assistant.objects.filter(pk__in=[each.pk for each in assistants])
    last = chosen.annotate(last=Subquery(failed.values("pk")[:1])).exclude(last=None)
    rows = Wakeup.objects.filter(pk__in=last.values("last"))
    return {row.assistant_id: row for row in rows.select_related("run").defer("run__report")}


def apply(wakeup: Wakeup, verdict: Verdict, config: Config | None) -> str:
    """Change the assistant's row, and write the wakeup's next try. Call it where that one ends.

    Returns why the assistant was disabled by this, or "".
    """
    mine = Assistant.objects.filter(pk=wakeup.assistant_id)
    if verdict.outcome == W.SUCCEEDED:
        mine.update(failures=0, not_before=None)
    elif verdict.outcome in FAILURES:
        return _failed(wakeup, verdict, config or Config())
    elif verdict.outcome == W.RATE_LIMITED:
        until = _until(wakeup, verdict.resets_at)
        mine.update(not_before=until)
        _again(wakeup, until)
    elif verdict.outcome == W.INTERRUPTED and interruptions(wakeup) < AGAIN_AT_MOST:
        _again(wakeup, clock.now())
    return ""


def _failed(wakeup: Wakeup, verdict: Verdict, config: Config) -> str:
    mine = Assistant.objects.filter(pk=wakeup.assistant_id)
    mine.update(failures=F("failures") + 1)
    failures = mine.values_list("failures", flat=True).get()
    mine.update(not_before=_backed_off(wakeup, failures))
    if not config.max_failures or failures < config.max_failures:
        return ""
    many = f"{failures} failures in a row" if failures > 1 else "it failed"
    reason = f"{many}{_LAST}{verdict.reason}"[:500]
    return reason if Assistant.objects.disable(wakeup.assistant_id, reason) else ""


def _backed_off(wakeup: Wakeup, failures: int) -> dt.datetime:
    """The first moment of the next planned try: the interval doubled, at most a day, never less."""
    interval, now = interval_of(wakeup), clock.now()
    doubled = interval * 2 ** min(failures, 20) if interval < DAY else interval
    delay = max(interval, min(doubled, DAY))
    # from its slot, not from its end: else a slot exactly one interval later would come too early
    start = wakeup.planned_at if now - wakeup.planned_at < interval else now
    return start + delay


def interval_of(wakeup: Wakeup) -> dt.timedelta:
    """How far apart the slots of its schedule lie; of the assistant's shortest when by hand."""
    found = [wakeup.schedule] if wakeup.schedule else list(wakeup.assistant.schedules.all())
    return min((_apart(schedule) for schedule in found), default=USUAL_INTERVAL)


def _apart(schedule: Schedule) -> dt.timedelta:
    if schedule.every_s:
        return dt.timedelta(seconds=schedule.every_s)
    slots = schedules.slots_after(schedules.timing_of(schedule), clock.now())
    first, second = islice(slots, 2)
    return second - first


def _until(wakeup: Wakeup, resets_at: dt.datetime | None) -> dt.datetime:
    """When the limit is over, as far as it is known. An agent may have made the time up."""
    now = clock.now()
    if resets_at is None:
        return now + max(SHORTEST_LIMIT, min(interval_of(wakeup), DAY))
    return min(max(resets_at, now + dt.timedelta(minutes=1)), now + LONGEST_LIMIT)


def interruptions(wakeup: Wakeup) -> int:
    """How many tries in a row before this one were interrupted."""
    count, each = 0, wakeup.again_of
    while each is not None and each.outcome == W.INTERRUPTED:
        count, each = count + 1, each.again_of
    return count


def _again(wakeup: Wakeup, at: dt.datetime) -> None:
    Wakeup.objects.create(
        assistant=wakeup.assistant,
        schedule=wakeup.schedule,
        trigger=Wakeup.Trigger.AGAIN,
        planned_at=wakeup.planned_at,
        not_before=at,
        again_of=wakeup,
        asked_by=wakeup.asked_by,
    )
