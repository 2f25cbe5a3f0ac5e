"""What several processes do to the same rows at the same moment, and what is there afterwards."""

from __future__ import annotations

import datetime as dt
import secrets

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from assistants import budgets, mailbox, outbox, ticking
from assistants.config import Config
from assistants.delivery.sending import settle
from assistants.models import Assistant, Delivery, Destination, OutboxItem, Wakeup
from runs import audit, clock, home, lease, lifecycle
from runs.models import Decision, Run
from runs.refusal import Refusal
from runs.verdicts import Person
from tests.factories import make_assistant, make_run, make_schedule, make_wakeup

RACERS = 4
LEASE_S = 30.0
number = 0  # of this process


def begin() -> None:
    home.prepare()
    User.objects.bulk_create(User(username=f"person-{each}") for each in range(RACERS))


# -- runs ---------------------------------------------------------------------------------------
def make_runs(many: int) -> list[str]:
    return [make_run().uid for _ in range(many)]


def claim_runs(uids: list[str]) -> list[str]:
    return [uid for uid in uids if lifecycle.claim(uid)]


def work_in(places: list[str]) -> list[str]:
    """A run of this process's own in each place; those that were let in."""
    let_in = []
    for place in places:
        try:
            let_in += [place] if lifecycle.claim(make_run(workspace=place).uid) else []
        except Refusal:
            continue
    return let_in


def work_below(places: list[str]) -> list[str]:
    """The same, in a place of this process's own that lies in those of the processes before."""
    return work_in([place + "/deeper" * number for place in places])


def live_in(places: list[str]) -> list[str]:
    """The workspaces of live runs in or below these places."""
    live = Run.objects.live().values_list("workspace", flat=True)
    return [found for found in live if any(f"{found}/".startswith(f"{each}/") for each in places)]


# -- wakeups ------------------------------------------------------------------------------------
def make_due(many: int) -> list[int]:
    """Schedules with a slot that has just come."""
    came = clock.now() - dt.timedelta(seconds=1)
    anchor = came - dt.timedelta(hours=1)
    made = [make_schedule(every_s=3600, next_at=came, anchor_at=anchor) for _ in range(many)]
    return [each.pk for each in made]


def plan() -> list[int]:
    done = ticking.Ticked()
    ticking.plan(done, clock.now())
    return done.planned


def planned(schedules: list[int]) -> list[int]:
    return list(Wakeup.objects.filter(schedule__in=schedules).values_list("schedule", flat=True))


def ring(wakeups: list[int]) -> list[int]:
    return [pk for pk in wakeups if Wakeup.objects.ring(pk)]


def make_waiting(assistants: int, each: int) -> list[int]:
    made = [make_assistant() for _ in range(assistants)]
    return [make_wakeup(assistant).pk for assistant in made for _ in range(each)]


def claim_wakeups(wakeups: list[int]) -> list[int]:
    won = []
    for pk in wakeups:
        try:
            with transaction.atomic():
                won += [pk] if Wakeup.objects.claim(pk, lease.owner(), LEASE_S) else []
        except IntegrityError:
            continue  # another one of its assistant runs
    return won


def running_by_assistant(wakeups: list[int]) -> list[int]:
    found = Wakeup.objects.filter(pk__in=wakeups, state="running")
    return list(found.values_list("assistant", flat=True))


# -- money --------------------------------------------------------------------------------------
def make_spender() -> int:
    return make_assistant().pk


def reserve(assistant: int, wanted_usd: float, daily_usd: float, tries: int) -> list[float]:
    """Set aside for wakeups of this process's own; what each got."""
    config = Config(budget_usd=wanted_usd, daily_budget_usd=daily_usd)
    one, got = Assistant.objects.get(pk=assistant), []
    for _ in range(tries):
        wakeup = make_wakeup(one, state="ended", started_at=clock.now())
        try:
            got.append(budgets.reserve(wakeup, config) or 0.0)
        except budgets.Exhausted:
            break
    return got


def spent(assistant: int) -> float:
    return budgets.spent_today(Assistant.objects.get(pk=assistant))


# -- items and deliveries -----------------------------------------------------------------------
def make_items(many: int, approvals: int, destinations: int) -> list[int]:
    """Items that wait for a decision, each to be delivered to so many destinations."""
    assistant = make_assistant()
    for _ in range(destinations):
        place = Destination.objects.create(name=f"d-{secrets.token_hex(4)}", kind="file")
        place.assistants.add(assistant)
    config = Config(hold=True, approvals=approvals)
    made = []
    for each in range(many):
        wakeup = make_wakeup(assistant, state="ended")
        made.append(outbox.write(wakeup, f"hello {each}", config).pk)
    return made


def decide(items: list[int]) -> list[int]:
    """Even ones of the racers say yes, odd ones no; the items on which this one was heard."""
    verdict = Decision.Verdict.REJECT if number % 2 else Decision.Verdict.APPROVE
    return _heard(items, verdict)


def approve(items: list[int]) -> list[int]:
    return _heard(items, Decision.Verdict.APPROVE)


def _heard(items: list[int], verdict: Decision.Verdict) -> list[int]:
    person = Person(user=User.objects.get(username=f"person-{number}"), via="web")
    heard = []
    for pk in items:
        try:
            outbox.decide(pk, verdict, person, reason="because")
        except Refusal:
            continue
        heard.append(pk)
    return heard


def standing(items: list[int]) -> list[tuple[str, int, int]]:
    """Of each item: its state, its decisions, its deliveries."""
    found = OutboxItem.objects.filter(pk__in=items).order_by("pk")
    return [
        (
            item.state,
            Decision.objects.filter(subject=outbox.subject_of(item)).count(),
            item.deliveries.count(),
        )
        for item in found
    ]


def deliveries_of(items: list[int]) -> list[int]:
    found = Delivery.objects.filter(item__in=items).order_by("pk")
    return list(found.values_list("pk", flat=True))


def claim_deliveries(deliveries: list[int]) -> list[int]:
    return [pk for pk in deliveries if Delivery.objects.claim(pk, lease.owner(), LEASE_S)]


def finish(items: list[int]) -> list[int]:
    """Claim the delivery of this process's number of each item, and say that it was sent."""
    told = []
    for pk in items:
        one = Delivery.objects.filter(item=pk).order_by("pk")[number]
        assert Delivery.objects.claim(one.pk, lease.owner(), LEASE_S)
        with transaction.atomic():
            assert Delivery.objects.finish(one.pk, lease.owner(), "sent")
            told += [pk] if settle(one.item) else []
    return told


# -- what is written down -----------------------------------------------------------------------
def tell(assistant: int, source_ids: list[str]) -> list[str]:
    one = Assistant.objects.get(pk=assistant)
    return [each for each in source_ids if mailbox.tell(one, "hi", source_id=each)[1]]


def record(many: int) -> None:
    for each in range(many):
        audit.record("run.stop", f"run:{number}", step=each)


def verified() -> tuple[int, list[str], int]:
    found = audit.verify()
    return found.events, list(found.troubles), found.unwitnessed
