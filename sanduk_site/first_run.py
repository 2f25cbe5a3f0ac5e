"""The first run, step by step: what was chosen so far, and what a sample assistant takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction

from assistants import arriving, scaffold, ticking
from assistants.models import Assistant, OutboxItem, Wakeup
from runs import audit, clock, condition, credentials, four_eyes, keys, own_keys
from runs.condition import EngineCondition
from runs.home import SAMPLE, sample_directory
from runs.models import SiteSetting
from runs.refusal import Refusal
from sanduk_site import people, roles

NAME = "first_run"
AGENT, REHEARSAL = "pi", "rehearsal"


@dataclass(frozen=True, slots=True)
class Step:
    """Args:
    name: its place in the address.
    title: a question, or what to do.
    is_done: whether it can be passed over.
    is_asked: whether it is a step at all, as far as was chosen.
    """

    name: str
    title: str
    is_done: Callable[[], bool]
    is_asked: Callable[[], bool] = lambda: True


def state() -> dict[str, Any]:
    """What was chosen so far; another process may have chosen more since."""
    value = SiteSetting.objects.filter(name=NAME).values_list("value", flat=True).first()
    return value if isinstance(value, dict) else {}


def remember(actor: Any, **facts: Any) -> None:
    """Keep what a step came to."""
    with transaction.atomic():
        row, _ = SiteSetting.objects.select_for_update().get_or_create(
            name=NAME, defaults={"value": {}}
        )
        row.value = {**(row.value if isinstance(row.value, dict) else {}), **facts}
        row.changed_at, row.changed_by = clock.now(), actor.get_username()
        row.save()


def is_finished() -> bool:
    return state().get("finished") is True


STEPS = (
    Step(
        "team",
        "One person, or a team?",
        lambda: four_eyes.is_pinned() or four_eyes.chosen() is not None,
    ),
    Step(
        "second",
        "A second person",
        lambda: has_second() or bool(state().get("second")),
        is_asked=four_eyes.is_on,
    ),
    Step("provider", "Whose models?", lambda: bool(state().get("provider"))),
    Step("engine", "What starts containers?", lambda: bool(state().get("engine"))),
    Step("assistant", "A first assistant", lambda: bool(state().get("assistant"))),
)


def steps() -> list[Step]:
    """Those that are asked, as far as was chosen."""
    return [step for step in STEPS if step.is_asked()]


def next_step() -> Step | None:
    """The first that is not done; None when all are."""
    return next((step for step in steps() if not step.is_done()), None)


def has_second() -> bool:
    """Whether there is somebody beside the first who may decide."""
    return bool(roles.deciders().count() > 1)


def invite(name: str, *, actor: Any) -> str:
    """Make an approver's account; the token of the link that sets its password. Raises Refusal."""
    if not name:
        raise Refusal("the second person needs a name")
    _, token = people.add(name, [roles.APPROVER], actor=actor)
    remember(actor, second=name)
    return token


def keep_key(name: str, value: str, *, actor: Any) -> None:
    """Keep a provider's key as `sanduk auth set` does. Raises Refusal; the key is in no message."""
    provider = own_keys.keyed().get(name)
    if provider is None:
        raise Refusal(f"there is no provider {name!r} that takes a key here")
    value = value.strip()
    credentials.check(provider.key_env, value)
    if fault := keys.fault_of(value):
        raise Refusal(f"what was given {fault}")
    credentials.store(provider.key_env, value)
    audit.record("auth.set", f"secret:{provider.key_env}", actor=actor)


def engine() -> EngineCondition:
    """How the engine is that runs would use, with what helps where it cannot be used."""
    return condition.of_engines(settings.SANDUK_RUNTIME)[0]


def sample() -> Assistant | None:
    return Assistant.objects.present().filter(directory=str(sample_directory().resolve())).first()


def make_sample(actor: Any) -> Wakeup:
    """Take in the sample assistant, unless it is there, and wake it. Raises Refusal."""
    assistant = sample()
    if assistant is None:
        place = sample_directory()
        if not place.exists():
            zone = settings.TIME_ZONE
            scaffold.new(SAMPLE, place, agent=AGENT, provider=REHEARSAL, zone=zone)
        assistant = arriving.add(place.resolve(), actor=actor).assistant
        audit.record("first-run.sample", f"assistant:{assistant.name}", actor=actor)
    under_way = assistant.wakeups.exclude(state=Wakeup.State.ENDED).order_by("-pk").first()
    if under_way is not None:
        return under_way
    return ticking.wake_by_hand(assistant, asked_by=actor.get_username(), actor=actor)


def sample_item() -> OutboxItem | None:
    """The newest thing it wants to say."""
    return OutboxItem.objects.filter(assistant=sample()).order_by("-pk").first()
