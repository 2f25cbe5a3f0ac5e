"""What Home shows, read in a fixed number of questions to the database."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Substr
from django.urls import reverse

from assistants import awaiting, consequences, excerpts, listing
from assistants.memory import marking
from assistants.models import Assistant, Delivery, Schedule
from runs import backup_age, clock, figures, host_states, own_words, pulse
from runs.models import Run, RunEvent
from runs.own_words import Words
from runs.sight import seen_by
from sanduk_site import spending

SHOWN = 30  # rows of one list
OLD = dt.timedelta(days=1)  # a decision that waits longer is marked
RECENT = dt.timedelta(days=3)  # interrupted runs are told of for so long
BARS = 14  # days of the small chart


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that needs a look: what, why (hostile, or whose words), since when, and where."""

    kind: str
    head: str
    why: str | Words = ""
    since: dt.datetime | None = None
    url: str = ""
    action: str = "See"


def waiting(user: Any, *, is_strict: bool) -> dict[str, Any]:
    """What waits for a decision, how much of it for this person, and how much for others.

    Args:
        is_strict: whether four eyes are on.
    """
    items = items_waiting(user)
    known = items if len(items) < SHOWN else None
    mine = awaiting.items_for(user, is_strict=is_strict, found=known)
    for item in items:
        item.is_mine = item.pk in mine
    memories = list(awaiting.open_memories(user)[:SHOWN])
    found = memories if len(memories) < SHOWN else None
    to_review = awaiting.memories_for(user, is_strict=is_strict, found=found)
    mark_memories(memories, to_review)
    many_items = len(items) if len(items) < SHOWN else awaiting.open_items(user).count()
    many_memories = len(memories) if len(memories) < SHOWN else awaiting.open_memories(user).count()
    return {
        "items": items,
        "memories": memories,
        "waiting_count": len(mine) + len(to_review),
        "for_others": max(many_items - len(mine), 0) + max(many_memories - len(to_review), 0),
    }


def items_waiting(user: Any) -> list[Any]:
    """Undecided items, the oldest first, with the beginning of what they say and where they go."""
    found = awaiting.open_items(user).select_related("assistant", "wakeup__run")
    found = found.order_by("created_at", "pk")
    rows = list(excerpts.begun(found).prefetch_related("assistant__destinations")[:SHOWN])
    for item in rows:
        item.title = excerpts.title(item.begins)
        item.goes_to = excerpts.destinations(item.assistant)
        item.is_old = clock.now() - item.created_at > OLD
    return rows


def mark_memories(rows: list[Any], mine: frozenset[int]) -> None:
    """Say in each memory what to look at first, and whether it waits for this person."""
    marked = marking.marked(rows)
    for snapshot in rows:
        snapshot.is_mine = snapshot.pk in mine
        snapshot.marks = marked[snapshot.pk]
        snapshot.is_old = clock.now() - snapshot.taken_at > OLD


def oldest_first(context: dict[str, Any]) -> dict[str, Any]:
    """What waits, of every kind in one list by its age, and how much of it the list leaves out."""
    queue = [
        *({"kind": "item", "row": each, "since": each.created_at} for each in context["items"]),
        *({"kind": "memory", "row": each, "since": each.taken_at} for each in context["memories"]),
        *({"kind": "change", "row": each, "since": each.state_at} for each in context["changes"]),
    ]
    queue.sort(key=lambda each: each["since"])
    return {"queue": queue[:SHOWN], "is_cut": len(queue) > SHOWN}


def running(user: Any) -> list[Run]:
    """Live runs with the last line of each agent, how long, and against which limits."""
    events = RunEvent.objects.filter(run=OuterRef("pk")).exclude(kind=RunEvent.Kind.STEP)
    last = events.order_by("-sequence").annotate(begins=Substr("text", 1, 300))
    found: QuerySet[Any] = Run.objects.live().select_related("wakeup__assistant")
    found = (
        found.filter(seen_by(user, "wakeup__assistant"))
        .annotate(last_line=Subquery(last.values("begins")[:1]))
        .defer("report", "task")
    )
    rows: list[Any] = figures.so_far(found.order_by("created_at")[:SHOWN])
    now = clock.now()
    for run in rows:
        wakeup = getattr(run, "wakeup", None)
        run.name = wakeup.assistant.name if wakeup else run.agent
        run.elapsed_s = max((now - (run.started_at or run.created_at)).total_seconds(), 0.0)
        run.limit_s = run.order.get("timeout_s")
        run.budget_usd = run.order.get("budget_usd")
    return rows


def next_wakeups(user: Any, count: int = 6) -> list[Schedule]:
    found = Schedule.objects.filter(
        seen_by(user, "assistant"),
        next_at__isnull=False,
        assistant__disabled_at=None,
        assistant__removed_at=None,
    )
    return list(found.select_related("assistant").order_by("next_at", "pk")[:count])


def troubles(user: Any) -> list[Trouble]:
    """What does not go on by itself."""
    return [
        *_of_the_worker(),
        *_of_the_disk(),
        *_of_the_backup(),
        *_of_deliveries(user),
        *_of_assistants(user),
        *(Trouble("flagged", line) for line in listing.trouble(seen_by(user))),
        *_of_runs(user),
    ]


def _of_the_worker() -> list[Trouble]:
    age_s = pulse.age_s("worker")
    url = reverse("system")
    if age_s is not None and not host_states.is_worker_away():
        return []
    queued = Run.objects.filter(state=Run.State.QUEUED).count()
    if age_s is None:
        if not queued and not Assistant.objects.awake().exists():
            return []
        head = "No worker has ever run here: nobody is woken, and no queued run starts."
        return [Trouble("interrupted", head, url=url)]
    tail = f", and {queued} run(s) wait in the queue" if queued else ""
    head = f"The worker does not work: nobody is woken{tail}."
    return [Trouble("failed", head, since=pulse.seen_at("worker"), url=url)]


def _of_the_disk() -> list[Trouble]:
    free_mb = host_states.free_mb()
    if not host_states.is_room_little(free_mb):
        return []
    kind = "failed" if free_mb < settings.SANDUK_MIN_FREE_MB else "flagged"
    return [Trouble(kind, f"Only {free_mb:,} MB are free on the disk.", url=reverse("system"))]


def _of_the_backup() -> list[Trouble]:
    said = backup_age.trouble()
    return [Trouble("flagged", said, url=reverse("system"))] if said else []


_DELIVERED_BADLY = {
    Delivery.State.UNKNOWN: ("unknown", "may or may not have arrived"),
    Delivery.State.GIVEN_UP: ("failed", "was given up"),
    Delivery.State.FAILED: ("flagged", "failed and is tried again"),
}


def _of_deliveries(user: Any) -> list[Trouble]:
    bad = Delivery.objects.filter(state__in=list(_DELIVERED_BADLY)).defer("output")
    bad = bad.filter(seen_by(user, "item__assistant"))
    rows = bad.select_related("destination", "item__assistant").defer("item__body")
    found = []
    for each in rows.order_by("-pk")[:10]:
        kind, words = _DELIVERED_BADLY[Delivery.State(each.state)]
        head = (
            f"Item {each.item_id} of {each.item.assistant.name} to {each.destination.name} {words}."
        )
        url = reverse("outbox-item", args=[each.item_id])
        # it may repeat what a destination answered
        found.append(Trouble(kind, head, Words("", each.error), each.ended_at, url))
    return found


def _of_assistants(user: Any) -> list[Trouble]:
    off = Assistant.objects.present().filter(seen_by(user), disabled_at__isnull=False)
    rows = list(off.order_by("-disabled_at")[:10])
    last = consequences.last_failed(rows) if rows else {}
    return [
        Trouble(
            "disabled",
            f"{each.name} is disabled.",
            consequences.words_of_disabling(each.disabled_reason, last.get(each.pk)),
            each.disabled_at,
            reverse("assistant", args=[each.name]),
        )
        for each in rows
    ]


def _of_runs(user: Any) -> list[Trouble]:
    since = clock.now() - RECENT
    cut = Run.objects.filter(outcome=Run.Outcome.INTERRUPTED, created_at__gte=since)
    rows = cut.select_related("wakeup__assistant").defer("report", "task")
    rows = rows.filter(seen_by(user, "wakeup__assistant"))
    found = []
    for each in rows.order_by("-created_at")[:5]:
        wakeup = getattr(each, "wakeup", None)
        name = wakeup.assistant.name if wakeup else each.agent
        url = reverse("run", args=[each.uid])
        found.append(
            Trouble("interrupted", f"A run of {name} was interrupted.",
                    own_words.of_run(each.outcome, each.reason), each.ended_at, url)
        )  # fmt: skip
    return found


@dataclass(frozen=True, slots=True)
class Spent:
    """USD, and how well it is known ("exact" or "lower_bound")."""

    usd: float = 0.0
    kind: str = "exact"


def spend() -> dict[str, Any]:
    """Today, this month and the last days, in UTC, from the runs that began then."""
    today = clock.now().astimezone(dt.UTC).date()
    first = min(today.replace(day=1), today - dt.timedelta(days=BARS - 1))
    since = dt.datetime.combine(first, dt.time(), dt.UTC)
    rows = (
        Run.objects.filter(created_at__gte=since)
        .order_by()
        .annotate(day=spending.DAY)
        .values("day")
        .annotate(usd=Sum("spent_usd"), unsure=Count("pk", filter=Q(spent_is_lower_bound=True)))
    )
    days = {dt.date.fromisoformat(row["day"]): (row["usd"] or 0.0, row["unsure"]) for row in rows}
    month = [spent for day, spent in days.items() if day >= today.replace(day=1)]
    budget, bounded, all_of_them = _day_budget()
    return {
        "today": _spent([days.get(today, (0.0, 0))]),
        "month": _spent(month),
        "bars": _bars(days, today),
        "day_budget": budget,
        "bounded": bounded,
        "is_whole": bounded == all_of_them,
    }


def _spent(parts: list[tuple[float, int]]) -> Spent:
    unsure = any(count for _, count in parts)
    return Spent(sum(usd for usd, _ in parts), "lower_bound" if unsure else "exact")


def _day_budget() -> tuple[float, int, int]:
    """The daily budgets of all assistants that are awake, of how many, of how many in all."""
    configs = list(Assistant.objects.awake().values_list("config", flat=True))
    budgets = [config.get("daily_budget_usd") for config in configs]
    bounded = [budget for budget in budgets if budget is not None]
    return sum(bounded), len(bounded), len(configs)


def _bars(days: dict[dt.date, tuple[float, int]], today: dt.date) -> list[dict[str, Any]]:
    """The last days as rectangles of a chart 280 wide and 50 high."""
    dates = [today - dt.timedelta(days=back) for back in reversed(range(BARS))]
    most = max((days.get(day, (0.0, 0))[0] for day in dates), default=0.0)
    bars = []
    for place, day in enumerate(dates):
        usd, unsure = days.get(day, (0.0, 0))
        height = round(48 * usd / most, 1) if most else 0.0
        least = "at least " if unsure else ""
        bars.append(
            {
                "x": place * 20 + 3,
                "y": 50 - height,
                "height": height,
                "is_least": bool(unsure),
                "words": f"{day:%d %b}: {least}${usd:,.2f}",
            }
        )
    return bars
