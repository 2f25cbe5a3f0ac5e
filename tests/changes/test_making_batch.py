"""A batch: how many at a time, what all may spend together, and what each of them got."""

from __future__ import annotations

import pytest

from changes import batch, batching, budgets, handover
from changes.asking import Options
from changes.models import Batch, Change
from runs.models import Run
from runs.order import Order
from runs.refusal import Refusal
from runs.verdicts import Person
from tests.changes.rows import LEASE_S, OWNER
from tests.factories import make_run

pytestmark = pytest.mark.django_db
ORDER = Order(task="", agent="pi", provider="rehearsal")
ANNA = Person(account="anna")


def asked(project, tasks=("a", "b", "c"), **words) -> Batch:
    return batch.ask_all(
        str(project.path), tasks, options=Options(order=ORDER), person=ANNA, **words
    )


def claimed(change: Change) -> bool:
    return batching.claim(change, OWNER)


def begun(change: Change) -> None:
    Change.objects.filter(pk=change.pk).update(run=make_run())


def ended(change: Change, *, spent: float, budget: float | None, unsure: bool = False) -> Run:
    run = make_run(state="ended", outcome="succeeded", exit_code=0)
    facts = {"spent_usd": spent, "spent_is_lower_bound": unsure, "order": {"budget_usd": budget}}
    Run.objects.filter(pk=run.pk).update(**facts)
    run.refresh_from_db()
    budgets.settle(change, run)
    assert Change.objects.give_up(change.pk, OWNER, "failed", "x")
    return run


def test_no_more_are_made_at_a_time_than_was_asked_for(project):
    made = asked(project, max_parallel=2)
    first, second, third = batch.changes_of(made)

    assert [claimed(each) for each in (first, second, third)] == [True, True, False]
    Change.objects.give_up(first.pk, OWNER, "failed", "x")
    assert claimed(third)


def test_what_is_left_is_shared_among_those_that_wait_and_comes_back_when_not_spent(project):
    made = asked(project, max_parallel=3, total_budget_usd=9.0)
    first, second, third = batch.changes_of(made)

    assert claimed(first)
    assert claimed(second)  # it has set nothing aside yet
    assert budgets.reserve(first, ORDER) == 3.0
    begun(first)
    assert budgets.reserve(second, ORDER) == 3.0
    begun(second)
    ended(first, spent=1.0, budget=3.0)
    assert claimed(third)
    assert budgets.reserve(third, ORDER) == 5.0
    ended(third, spent=0.5, budget=5.0, unsure=True)
    ended(second, spent=3.0, budget=3.0)
    spent = [each.reserved_usd for each in batch.changes_of(made)]
    assert spent == [1.0, 3.0, 5.0]


def test_nothing_starts_when_nothing_is_left(project):
    made = asked(project, tasks=("a", "b"), total_budget_usd=2.0)
    first, second = batch.changes_of(made)
    order = Order(task="", budget_usd=2.0)
    assert claimed(first)
    assert budgets.reserve(first, order) == 2.0
    assert claimed(second)

    with pytest.raises(budgets.Exhausted, match=r"\$2.00 of the \$2.00"):
        budgets.reserve(second, order)


def test_without_a_batch_the_orders_own_budget_counts(project):
    made = asked(project, tasks=("a",))
    (change,) = batch.changes_of(made)

    assert budgets.reserve(change, Order(task="", budget_usd=0.5)) == 0.5
    assert budgets.reserve(change, ORDER) is None


@pytest.mark.parametrize(
    ("tasks", "words", "said"),
    [
        ((), {}, "there is no task"),
        (("a", " "), {}, "the task is empty"),
        (("a",), {"max_parallel": 0}, "--max-parallel"),
        (("a",), {"total_budget_usd": 0.0}, "--total-budget"),
        (("a",), {"total_budget_usd": float("nan")}, "--total-budget"),
    ],
)
def test_a_batch_that_cannot_be_meant_leaves_nothing(project, settings, tasks, words, said):
    with pytest.raises(Refusal, match=said):
        asked(project, tasks, **words)

    assert not Batch.objects.exists()
    assert not Change.objects.exists()
    assert list((settings.SANDUK_HOME / "changes").glob("*")) == []


def test_a_cancelled_batch_begins_nothing_more(project):
    made = asked(project)
    first, second, third = batch.changes_of(made)
    assert claimed(first)

    batch.cancel(made, "ben")

    states = [(each.state, each.reason, each.stop_by) for each in batch.changes_of(made)]
    dropped = ("failed", "cancelled by ben before it began", "")
    assert states == [("running", "", "ben"), dropped, dropped]
    assert not claimed(second)
    assert Change.objects.renew(first.pk, OWNER, LEASE_S)
    assert third.pk not in {each.pk for each in Change.objects.filter(state="queued")}


def test_a_worker_is_told_of_as_many_as_there_is_room_for(project):
    made = asked(project, max_parallel=2)
    first, second, third = batch.changes_of(made)

    assert handover.ring_next(made.uid) == [first.uid, second.uid]
    assert handover.ring_next(made.uid) == []
    assert claimed(first)
    Change.objects.give_up(first.pk, OWNER, "failed", "x")
    assert handover.ring_next(made.uid) == [third.uid]


def test_nobody_is_told_of_a_batch_that_a_process_makes_itself(project):
    made = asked(project)
    Batch.objects.update(owner="host/boot/1/2/3")

    assert handover.ring_next(made.uid) == []
