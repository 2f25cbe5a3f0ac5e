"""Assistants arrive from a directory, change with it, are put to sleep, and leave."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
from django.db import IntegrityError, transaction

from assistants import (
    assistant_toml,
    belonging,
    briefing,
    briefs,
    placing,
    schedules,
    toml_text,
)
from assistants.assistant_toml import FILE, Arrival
from assistants.config import restored
from assistants.keys import BY_NAME, DESTINATIONS, KEYS
from assistants.models import Assistant, Destination, Schedule, Wakeup
from assistants.schedules import Timing, timing_of
from assistants.security import conflicts, kept, told, unsettled
from runs import audit, clock, keys
from runs.paths import expanded
from runs.plan import make_plan
from runs.refusal import Refusal

Counts = Literal["file", "web"]

_TRIES = 3  # others that may add the same at the same moment


@dataclass(frozen=True, slots=True)
class Added:
    """Args:
    changed: what is different from what was known of it, in words; () for nothing.
    """

    assistant: Assistant
    created: bool
    changed: tuple[str, ...]
    notes: tuple[str, ...]


def place(text: str) -> Path:
    """A directory as typed, absolute and without links. Raises Refusal when it is none."""
    path = expanded(text, what="directory")
    try:
        real = path.resolve()
    except (OSError, RuntimeError) as exc:
        raise Refusal(f"{text} cannot be resolved: {exc}") from None
    if not real.is_dir():
        raise Refusal(f"there is no directory {text}")
    if not str(real).isprintable():
        raise Refusal(
            f"{text!r} holds a character that is no text; give the directory another name"
        )
    return real


def add(directory: Path, *, actor: Any = None, security: Counts | None = None) -> Added:
    """Take in what `directory` says; again and again is the same as once.

    Args:
        actor: the site user who has it taken in; None: the OS account of this process.
        security: whose word counts where somebody said on the web what the file says otherwise.

    Raises Refusal when anything in it is wrong, its name is another directory's, or such a word
    is needed.
    """
    arrival = assistant_toml.read(directory, now=clock.now())
    notes = (*arrival.notes, *placing.people_missing(arrival.config), *check_whole(arrival))
    for tries_left in reversed(range(_TRIES)):
        try:
            with transaction.atomic():
                return _take_in(arrival, notes, actor, security)
        except IntegrityError:
            if not tries_left:
                raise  # no race is lost so often
            # another command was faster, and what it wrote can be seen now
    raise AssertionError("the last try returns or raises")


def check_whole(arrival: Arrival) -> tuple[str, ...]:
    """Find out now, not at its first wakeup, what could not be run.

    Returns what is still missing for its first wakeup, a line each. Raises Refusal.
    """
    assistant = Assistant(name=arrival.name, directory=str(arrival.directory))
    placing.check_places(arrival)
    _destinations(arrival)
    try:
        text = briefing.brief(assistant, arrival.config)
        order = briefing.order(
            assistant, arrival.config, text or "-", budget_usd=arrival.config.budget_usd
        )
        plan = make_plan(order)
    except (briefing.BrokenSettings, Refusal) as exc:
        raise placing.at_its_key(arrival, str(exc)) from None
    if plan.provider is not None:
        try:
            keys.provider_key(plan.provider)
        except Refusal as exc:
            return (f"before its first wakeup: {exc}",)
    return ()


def _take_in(
    arrival: Arrival, notes: tuple[str, ...], actor: Any, security: Counts | None
) -> Added:
    destinations = _destinations(arrival)
    there = Assistant.objects.present()
    # nobody says anything of its security on the web meanwhile
    rows = there.select_for_update(of=("self",))
    known = rows.filter(directory=str(arrival.directory)).first()
    other = there.filter(name=arrival.name).exclude(directory=str(arrival.directory)).first()
    if other is not None:
        raise Refusal(
            f"the name {arrival.name} is taken by {other.directory}; give {arrival.directory} "
            f"another in its {FILE}, or first: sanduk assistant remove {arrival.name}"
        )
    if known is None:
        known = Assistant(directory=str(arrival.directory), created_at=clock.now())
    created = known.pk is None
    found = conflicts(known, arrival.config)
    if found and security is None:
        raise unsettled(known, found, arrival.directory)
    if found and security == "web":
        arrival = replace(arrival, config=kept(known, arrival.config, found))
        notes = (*notes, *check_whole(arrival), *told(known))
    known.set_on_web = {
        field: fact
        for field, fact in known.set_on_web.items()
        if field in found and security == "web"
    }
    changed = () if created else _differences(known, arrival)
    known.name = arrival.name
    known.config = arrival.config.stored()
    known.toml_sha256 = arrival.sha256
    if created:
        known.save()
    else:
        # only what the file decides: failures may be counted at this moment
        known.save(update_fields=["name", "config", "toml_sha256", "set_on_web"])
    _keep_brief(known, arrival, actor)
    rescheduled = _reschedule(known, arrival.timings)
    if destinations is not None and set(known.destinations.all()) != set(destinations):
        known.destinations.set(destinations)
        changed = changed if created else (*changed, "destinations")
    if rescheduled and not created:
        changed = (*changed, "schedule")
    if created or changed:
        action = "add" if created else "change"
        settled = {"security": security} if found else {}
        _write_down(action, known, actor=actor, changed=list(changed), **settled)
    return Added(known, created, tuple(changed), notes)


def _keep_brief(known: Assistant, arrival: Arrival, actor: Any) -> None:
    by = actor.get_username() if actor is not None else audit.account()
    try:
        briefs.keep(known, briefing.brief(known, arrival.config), account=by)
    except briefing.BrokenSettings as exc:
        raise placing.at_its_key(arrival, str(exc)) from None


def _destinations(arrival: Arrival) -> list[Destination] | None:
    names = arrival.destinations
    if names is None:
        return None
    there = Destination.objects.filter(name__in=names, removed_at=None)
    found = {each.name: each for each in there}
    for name in names:
        if name not in found:
            raise arrival.wrong(
                DESTINATIONS,
                f"there is no destination {name!r} on this host; sanduk destination add makes one",
            )
    return [found[name] for name in names]


def _differences(known: Assistant, arrival: Arrival) -> tuple[str, ...]:
    """The keys that say something else than before."""
    new = json.loads(json.dumps(arrival.config.stored()))  # as the row gives it back
    names = [key.name for key in KEYS if key.field in new]
    changed = [
        name for name in names if known.config.get(BY_NAME[name].field) != new[BY_NAME[name].field]
    ]
    if known.name != arrival.name:
        changed.insert(0, f"name (it was {known.name})")
    return tuple(changed)


def _reschedule(assistant: Assistant, timings: tuple[Timing, ...]) -> bool:
    """Keep the rows of schedules that stay, with where they are; True when any is new or gone."""
    left = list(assistant.schedules.all())
    changed = False
    for timing in timings:
        same = next((row for row in left if timing_of(row).same_as(timing)), None)
        if same is not None:
            left.remove(same)
            continue
        changed = True
        row = Schedule(assistant=assistant, **timing.fields())
        row.save()
        _plan(row)
    for row in left:
        changed = True
        for waiting in row.wakeups.filter(state=Wakeup.State.WAITING):
            Wakeup.objects.skip(
                waiting.pk, Wakeup.Outcome.CANCELLED, "its schedule was changed or taken away"
            )
        row.delete()
    return changed


def _plan(schedule: Schedule) -> None:
    """Let it go on from now, whatever was missed."""
    decision = schedules.settle(timing_of(schedule), None, clock.now(), "")
    Schedule.objects.filter(pk=schedule.pk).update(next_at=decision.next_at)


def enable(assistant: Assistant, *, actor: Any = None) -> bool:
    """Wake it again from its next slot on; False when it was enabled already. Raises Refusal."""
    belonging.require(actor, assistant, "wake")
    with transaction.atomic():
        if not Assistant.objects.enable(assistant.pk):
            return False
        # what it slept through on purpose was not missed
        for schedule in assistant.schedules.all():
            _plan(schedule)
        _write_down("enable", assistant, actor=actor)
    return True


def disable(assistant: Assistant, reason: str, *, actor: Any = None) -> bool:
    """Wake it no more; False when it is disabled already. What runs at this moment goes on.

    Raises Refusal.
    """
    belonging.require(actor, assistant, "wake")
    with transaction.atomic():
        if not Assistant.objects.disable(assistant.pk, reason):
            return False
        _cancel_waiting(assistant, f"disabled: {reason}")
        _write_down("disable", assistant, actor=actor, reason=reason)
    return True


def remove(assistant: Assistant) -> None:
    """Take it off the list. Its directory stays as it is, and so does what it said.

    Raises Refusal while it is awake.
    """
    with transaction.atomic():
        # first the row: a pass that plans its slots waits, or finds it gone
        found = Assistant.objects.present().filter(pk=assistant.pk)
        if not found.update(removed_at=clock.now()):
            raise Refusal(f"assistant {assistant.name} was removed by another command")
        awake = assistant.wakeups.filter(state=Wakeup.State.RUNNING).first()
        if awake is not None:
            run = f": sanduk stop {awake.run.uid}" if awake.run else ""
            raise Refusal(f"assistant {assistant.name} is awake; wait, or stop its run first{run}")
        _cancel_waiting(assistant, "the assistant was removed")
        Schedule.objects.filter(assistant=assistant).update(next_at=None)
        _write_down("remove", assistant)


def _cancel_waiting(assistant: Assistant, reason: str) -> None:
    for waiting in assistant.wakeups.filter(state=Wakeup.State.WAITING):
        Wakeup.objects.skip(waiting.pk, Wakeup.Outcome.CANCELLED, reason)


def exported(assistant: Assistant) -> str:
    """Its `assistant.toml`, from the database: what really counts. Raises Refusal."""
    timings = [timing_of(row) for row in assistant.schedules.all()]
    names = assistant.destinations.filter(removed_at=None).values_list("name", flat=True)
    try:
        config = restored(assistant.config)
    except msgspec.ValidationError as exc:
        raise Refusal(
            f"the settings of {assistant.name} were stored by another version ({exc}); read them "
            f"anew with: sanduk assistant add {assistant.directory}"
        ) from None
    return toml_text.written(assistant.name, config, timings, list(names))


def unread_change(assistant: Assistant) -> str:
    """Why its file is not what it was added from, in words; "" when it is."""
    again = f"sanduk assistant add {assistant.directory}"
    try:
        digest = assistant_toml.digest_of(Path(assistant.directory))
    except Refusal as exc:
        return str(exc)
    if digest == assistant.toml_sha256:
        return ""
    return f"{FILE} has changed since it was read; to take it in: {again}"


def _write_down(action: str, assistant: Assistant, **detail: Any) -> None:
    audit.record(f"assistant.{action}", f"assistant:{assistant.name}", **detail)
