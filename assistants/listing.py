"""What `sanduk assistant` tells: all assistants, one of them, its past and its next wakeups."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.db.models import Case, Count, Exists, Min, OuterRef, Q, QuerySet, Subquery, When

from assistants import keys, schedules
from assistants.arriving import unread_change
from assistants.consequences import BY_HOST
from assistants.keys import DESTINATIONS, KEYS, NAME, SCHEDULE_NAMES
from assistants.models import Assistant, InboxMessage, OutboxItem, Schedule, Wakeup
from assistants.schedules import Slot, timing_of
from runs.refusal import Refusal
from runs.visible import visible

_STATES = OutboxItem.State
_ENDS = Wakeup.Outcome
_DID_NOT_RUN = (_ENDS.MISSED, _ENDS.OVERLAP, _ENDS.QUIET, _ENDS.GATE, _ENDS.NOTHING,
                _ENDS.BACKING_OFF, _ENDS.CANCELLED)  # fmt: skip


def described() -> QuerySet[Assistant]:
    """All that were not removed, with what is told of them, in as many questions as for one."""
    newest = Wakeup.objects.filter(assistant=OuterRef("pk"), state=Wakeup.State.ENDED)
    # what a slot came to that did not run hides nothing
    idle = Case(When(outcome__in=_DID_NOT_RUN, then=1), default=0)
    newest = newest.order_by(idle, "-ended_at", "-pk")
    running = Wakeup.objects.filter(assistant=OuterRef("pk"), state=Wakeup.State.RUNNING)
    return (
        Assistant.objects.present()
        .annotate(
            next_slot=Min("schedules__next_at"),
            is_running=Exists(running),
            last_outcome=Subquery(newest.values("outcome")[:1]),
            last_ended=Subquery(newest.values("ended_at")[:1]),
            messages_waiting=_number(InboxMessage.objects.waiting()),
            items_pending=_number(OutboxItem.objects.filter(state=_STATES.PENDING)),
            items_undelivered=_number(OutboxItem.objects.filter(state=_STATES.APPROVED)),
        )
        .select_related("owner", "key_of")
        .prefetch_related("schedules", "destinations")
        .order_by("name")
    )


def _number(rows: QuerySet[Any]) -> Any:
    """How many of `rows` are an assistant's, as a subquery: joins would multiply each other."""
    mine = rows.filter(assistant=OuterRef("pk")).order_by().values("assistant")
    return Subquery(mine.annotate(number=Count("pk")).values("number"))


def state(assistant: Any, now: dt.datetime) -> str:
    """In one word or a few."""
    if assistant.is_running:
        return "running"
    if assistant.disabled_at:
        return "disabled"
    if assistant.not_before and assistant.not_before > now:
        return "backing off"
    return "enabled"


def next_at(assistant: Any) -> dt.datetime | None:
    """When it is woken next: its next slot, or the end of its back-off where that is later."""
    if assistant.disabled_at or assistant.next_slot is None:
        return None
    slot: dt.datetime = assistant.next_slot
    return max(slot, assistant.not_before or slot)


def row(assistant: Any, now: dt.datetime) -> tuple[str, ...]:
    """The cells of its line in `list`."""
    last = assistant.last_outcome
    return (
        assistant.name,
        state(assistant, now),
        minute(next_at(assistant)),
        f"{last.replace('_', ' ')} {minute(assistant.last_ended)}" if last else "-",
        str(assistant.messages_waiting or 0),
        str(assistant.items_pending or 0),
        visible(assistant.directory, limit=200),
    )


def as_json(assistant: Any, now: dt.datetime) -> dict[str, Any]:
    """The same for scripts, with all settings. The last three names are the first program's."""
    return {
        "name": assistant.name,
        "directory": assistant.directory,
        "state": state(assistant, now).replace(" ", "_"),
        "disabled_at": assistant.disabled_at,
        "disabled_reason": assistant.disabled_reason,
        "failures": assistant.failures,
        "not_before": assistant.not_before,
        "next_at": next_at(assistant),
        "last_outcome": assistant.last_outcome,
        "last_ended_at": assistant.last_ended,
        "config": assistant.config,
        "set_on_web": assistant.set_on_web,
        "schedules": [_schedule_json(each) for each in assistant.schedules.all()],
        "destinations": _destinations(assistant),
        "unread_change": unread_change(assistant) or None,
        "pending": assistant.messages_waiting or 0,
        "undelivered": assistant.items_undelivered or 0,
        "awaiting_approval": assistant.items_pending or 0,
    }


def _schedule_json(schedule: Schedule) -> dict[str, Any]:
    timing = timing_of(schedule).fields()
    return {**timing, "next_at": schedule.next_at}


def _destinations(assistant: Assistant) -> list[str]:
    return [each.name for each in assistant.destinations.all() if each.removed_at is None]


def lines(assistant: Any, now: dt.datetime) -> list[tuple[str, str]]:
    """What `show` prints: a name and its value a line."""
    told = state(assistant, now)
    if assistant.disabled_at:
        told = f"disabled {minute(assistant.disabled_at)}: {visible(assistant.disabled_reason)}"
    elif told == "backing off":
        told = f"backing off until {minute(assistant.not_before)}"
    found = [
        ("assistant", assistant.name),
        ("directory", visible(assistant.directory)),
        ("state", told),
        ("failures", f"{assistant.failures} in a row"),
        *(("schedule", spoken(timing_of(each))) for each in assistant.schedules.all()),
        ("next", minute(next_at(assistant))),
    ]
    found += settings(assistant)
    found += [
        ("messages", f"{assistant.messages_waiting or 0} waiting"),
        (
            "outbox",
            f"{assistant.items_pending or 0} waiting for a decision, "
            f"{assistant.items_undelivered or 0} approved and not delivered",
        ),
    ]
    return found


def settings(assistant: Assistant) -> list[tuple[str, str]]:
    """Each setting under the key of `assistant.toml`, where it is not at what it usually is."""
    found = []
    for key in KEYS:
        if key.name in (NAME, DESTINATIONS, *SCHEDULE_NAMES):
            continue
        value = assistant.config.get(key.field, key.absent)
        value = tuple(value) if isinstance(value, list) else value
        if value != key.absent or key.name in ("mode", "approval", "memory_review"):
            found.append((key.name, _told(key.kind.write(value))))
    if names := _destinations(assistant):
        found.append((DESTINATIONS, ", ".join(names)))
    return found


def _told(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return " ".join(visible(str(each)) for each in value)
    return visible(str(value))


def spoken(timing: schedules.Timing) -> str:
    """A schedule in words."""
    when = f"every {keys.spoken(timing.every_s)}" if timing.every_s else timing.cron
    words = [f"{when} ({timing.timezone})", f"missed: {timing.missed}"]
    if timing.missed_within_s:
        words[-1] += f" {keys.spoken(timing.missed_within_s)}"
    if timing.jitter_s:
        words.append(f"up to {keys.spoken(timing.jitter_s)} later")
    if timing.quiet_hours:
        words.append(f"quiet {timing.quiet_hours}")
    return ", ".join(words)


def why(wakeup: Wakeup, now: dt.datetime) -> str:
    """The reason of one in the history; of one that waits, until when."""
    if wakeup.state == Wakeup.State.WAITING and not wakeup.reason:
        until = wakeup.not_before
        return f"until {second(until)}" if until > now else "for a process that wakes it"
    return visible(wakeup.reason, limit=120)


def second(at: dt.datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"


def minute(at: dt.datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at else "-"


def next_wakeups(assistant: Assistant, count: int, now: dt.datetime) -> list[tuple[Schedule, Slot]]:
    """The next `count` slots that will run, of all its schedules."""
    found: list[tuple[Schedule, Slot]] = []
    for schedule in assistant.schedules.all():
        timing = timing_of(schedule)
        # one that is due and has not been looked at yet comes first
        start = min(now, (schedule.next_at or now) - dt.timedelta(microseconds=1))
        try:
            slots = schedules.upcoming(timing, start, count, str(schedule.pk))
        except Refusal as exc:
            raise Refusal(f"assistant {assistant.name}: {exc}") from None
        found += [(schedule, slot) for slot in slots]
    return sorted(found, key=lambda each: (each[1].planned_at, each[1].not_before))[:count]


def history(assistant: Assistant, limit: int) -> Iterable[Wakeup]:
    """Its wakeups, newest first."""
    return assistant.wakeups.select_related("run", "assistant").order_by("-planned_at", "-pk")[
        :limit
    ]


def one(name: str) -> Any:
    """The described assistant of that name, which is there."""
    return described().get(name=name)


def trouble(among: Q | None = None) -> list[str]:
    """What is wrong with assistants that look right, in a line for each cause.

    An enabled one that no slot will wake; those whose last slot this host could not run.

    Args:
        among: which of them; None for all.
    """
    awake = Assistant.objects.awake().filter(among or Q())
    newest = Wakeup.objects.filter(assistant=OuterRef("pk"), state=Wakeup.State.ENDED)
    reason = Subquery(newest.order_by("-ended_at", "-pk").values("reason")[:1])
    slots = Schedule.objects.filter(assistant=OuterRef("pk"), next_at__isnull=False)
    found = awake.annotate(reason=reason, has_slot=Exists(slots)).order_by("name")
    wrong = found.filter(Q(has_slot=False) | Q(reason__startswith=BY_HOST))
    rows = list(wrong.values_list("name", "has_slot", "reason"))
    slotless = [
        f"assistant {name} is enabled and has no next wakeup; to plan one: sanduk assistant "
        f"disable {name}, then enable {name}"
        for name, has_slot, _ in rows
        if not has_slot
    ]
    return [*slotless, *_by_host((name, why or "") for name, _, why in rows)]


def _by_host(rows: Iterable[tuple[str, str]]) -> list[str]:
    of_cause = defaultdict(list)
    for name, why in rows:
        if why.startswith(BY_HOST):
            of_cause[why.removeprefix(BY_HOST)].append(name)
    return [
        f"this host could not run {', '.join(names[:5])}"
        f"{f' and {len(names) - 5} more' if len(names) > 5 else ''}: {visible(why, limit=300)}"
        for why, names in of_cause.items()
    ]
