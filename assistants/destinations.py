"""The host's list of places that approved items go to. Only this host's people change it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import Any

import msgspec
from django.core.exceptions import ValidationError
from django.db import transaction

from assistants import appending, belonging, outbox, reach
from assistants.delivery.kinds import CommandSettings, Settings, settings_of
from assistants.delivery.sending import settle
from assistants.models import Assistant, Delivery, Destination, OutboxItem
from assistants.models.assistant import NAME
from assistants.named import one_assistant
from runs import audit, clock
from runs.refusal import Refusal

OVER = (Delivery.State.SENT, Delivery.State.GIVEN_UP, Delivery.State.UNKNOWN)


def add(
    name: str,
    kind: str,
    settings: Settings,
    *,
    timeout_s: int | None = None,
    remind_after_s: int | None = None,
    assistants: Iterable[str] = (),
) -> tuple[Destination, bool]:
    """Keep a destination, or change the one of that name; with whether it is new.

    Args:
        timeout_s: how long one delivery may take; None: as it was, or a minute for a new one.
        remind_after_s: it is told of items that wait for a decision for so long; 0: of none;
            None: as it was.
        assistants: the names of those whose items go there, besides those that had it before.

    Raises Refusal: it cannot work, or the name is taken by one of another kind.
    """
    try:
        NAME(name)
    except ValidationError as exc:
        raise Refusal(f"{name!r} is no name of a destination: {exc.messages[0]}") from None
    settings.check()
    reach.check_out_of_reach(f"destination {name}", reach.places_of(settings))
    appending.check(name, settings)
    config = msgspec.to_builtins(settings)
    with transaction.atomic():
        linked = [one_assistant(each) for each in assistants]
        found = Destination.objects.filter(name=name, removed_at=None).first()
        if found is not None and found.kind != kind:
            raise Refusal(f"{name} is a destination already, a {found.kind}; remove it first")
        is_new = found is None
        found = found or Destination(name=name, kind=kind)
        found.config = config
        if timeout_s is not None:
            found.timeout_s = timeout_s
        if remind_after_s is not None:
            found.remind_after_s = remind_after_s or None
        found.save()
        found.assistants.add(*linked)
        audit.record(
            "destination.add" if is_new else "destination.change",
            f"destination:{name}",
            kind=kind,
            config=config,
            assistants=[each.name for each in linked],
        )
    return found, is_new


def link(assistant: Assistant, names: Iterable[str]) -> None:
    """Have an assistant's items go to exactly these. Raises Refusal for a name that is none."""
    assistant.destinations.set([named(name) for name in names])


def named(name: str) -> Destination:
    found = Destination.objects.filter(name=name, removed_at=None).first()
    if found is None:
        raise Refusal(f"there is no destination {name!r}; sanduk destination list shows them")
    return found


def remove(name: str) -> int:
    """Forget a destination; what was on its way there is given up, and how much that was.

    Raises Refusal while something is being sent there.
    """
    with transaction.atomic():
        found = named(name)
        theirs = Delivery.objects.filter(destination=found)
        if theirs.filter(state=Delivery.State.SENDING).exists():
            raise Refusal(f"something is being sent to {name} right now; try again in a moment")
        open_ones = theirs.filter(state__in=[Delivery.State.WAITING, Delivery.State.FAILED])
        given_up = open_ones.update(
            state=Delivery.State.GIVEN_UP,
            ended_at=clock.now(),
            error="the destination was removed",
        )
        found.removed_at = clock.now()
        found.save(update_fields=["removed_at"])
        audit.record("destination.remove", f"destination:{name}", given_up=given_up)
    return given_up


def told(destination: Destination) -> str:
    """Where it leads, in a few words."""
    try:
        return settings_of(destination.kind, destination.config).told()
    except Refusal as exc:
        return str(exc)


def for_command(command: str) -> Destination:
    """The place of `outbox --deliver CMD`: a shell's command line, on no list of its own.

    The same words are the same place, so that what it got once it does not get again.
    """
    name = f"by-hand-{hashlib.sha256(command.encode()).hexdigest()[:12]}"
    config = msgspec.to_builtins(CommandSettings(argv=("/bin/sh", "-c", command)))
    with transaction.atomic():
        found = Destination.objects.filter(name=name, config=config).first()
        return found or Destination.objects.create(
            name=name, kind=Destination.Kind.COMMAND, config=config, removed_at=clock.now()
        )


def ring(item: OutboxItem, *, to: Collection[str] = ()) -> int:
    """Try at once what failed and waits for its time; how many. `to` limits it to these places."""
    failed = Delivery.objects.filter(item=item, state=Delivery.State.FAILED)
    if to:
        failed = failed.filter(destination__name__in=to)
    return failed.update(next_at=clock.now())


def again(item: OutboxItem, *, to: str = "", actor: Any = None) -> list[Delivery]:
    """Deliver once more on purpose, with a new key: wherever the last delivery is over.

    What went to a destination that was removed goes to the one that has its name now. Without
    `to`, destinations that surely have it are left out, unless all of them have.
    Raises Refusal when there is nothing to send again.
    """
    belonging.require(actor, item.assistant, "see")
    with transaction.atomic():
        _check_approved(OutboxItem.objects.select_for_update().get(pk=item.pk))
        last = _last(item)
        over = [each for each in last if each.state in OVER]
        if to:
            chosen = [each for each in over if each.destination.name == to]
        else:
            chosen = [each for each in over if each.state != Delivery.State.SENT] or over
        leads = [(each, there) for each in chosen if (there := _there_now(each.destination))]
        if not leads:
            raise Refusal(_why_not_again(item, last, to))
        audit.record(
            "delivery.again",
            outbox.subject_of(item),
            actor=actor,
            destinations=[there.name for _, there in leads],
        )
        return [
            Delivery.objects.create(item=item, destination=there, number=each.number + 1)
            for each, there in leads
        ]


def arrived(item: OutboxItem, *, to: str = "", actor: Any = None) -> int:
    """A person found out that what was unknown has arrived; how many.

    Args:
        to: only there; "": wherever it is unknown.

    Raises Refusal for none.
    """
    belonging.require(actor, item.assistant, "see")
    with transaction.atomic():
        found = Delivery.objects.filter(item=item, state=Delivery.State.UNKNOWN)
        if to:
            found = found.filter(destination__name=to)
        names = sorted(found.values_list("destination__name", flat=True))
        count = found.update(state=Delivery.State.SENT, error="a person says that it arrived")
        if not count:
            where = f" to {to}" if to else ""
            raise Refusal(f"no delivery of item {item.pk}{where} is unknown")
        audit.record(
            "delivery.arrived",
            outbox.subject_of(item),
            actor=actor,
            deliveries=count,
            destinations=names,
        )
        settle(item)
    return count


def _last(item: OutboxItem) -> list[Delivery]:
    """The newest delivery to each destination; one in a removed one's place continues it."""
    rows = Delivery.objects.filter(item=item).select_related("destination")
    return list({each.destination.name: each for each in rows.order_by("number", "pk")}.values())


def _there_now(destination: Destination) -> Destination | None:
    """The destination, or the one that has its name since it was removed."""
    if destination.removed_at is None or destination.name.startswith("by-hand-"):
        return destination
    return Destination.objects.filter(name=destination.name, removed_at=None).first()


def _why_not_again(item: OutboxItem, last: list[Delivery], to: str) -> str:
    look = f"sanduk outbox show {item.pk}"
    concerned = [each for each in last if each.destination.name == to] if to else last
    if not concerned:
        where = f" to {to}" if to else ""
        return (
            f"item {item.pk} has no delivery{where}: it goes where its assistant's items went when "
            "it was approved. sanduk outbox --deliver CMD gives what is approved to a command"
        )
    if removed := [each for each in concerned if each.state in OVER]:
        name = removed[0].destination.name
        return (
            f"the destination {name} was removed: put another in its place, sanduk destination "
            f"add {name}, and say it again"
        )
    where = f" --to {to}" if to else ""
    return (
        f"no delivery of item {item.pk} is over yet ({look}); to try what failed at once: sanduk "
        f"deliver {item.pk}{where}"
    )


def _check_approved(item: OutboxItem) -> None:
    if item.state not in (OutboxItem.State.APPROVED, OutboxItem.State.DELIVERED):
        raise Refusal(f"item {item.pk} is {item.state}; only what was approved is delivered")
