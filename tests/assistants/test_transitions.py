"""Rows of assistants change state one way, and one process wins."""

from __future__ import annotations

import datetime as dt

import pytest

from assistants.models import (
    Assistant,
    Delivery,
    Destination,
    InboxMessage,
    MemorySnapshot,
    OutboxItem,
    Schedule,
    Wakeup,
)
from runs import clock
from tests.factories import make_assistant, make_schedule, make_wakeup, refused

pytestmark = pytest.mark.django_db


def make_item(**fields) -> OutboxItem:
    assistant = make_assistant()
    values = {"body": "hello", "sha256": "0" * 64, **fields}
    return OutboxItem.objects.create(assistant=assistant, wakeup=make_wakeup(assistant), **values)


def test_a_name_and_a_directory_are_taken_until_the_assistant_is_removed():
    first = make_assistant("daily", directory="/srv/one")

    assert refused(lambda: make_assistant("daily", directory="/srv/two"))
    assert refused(lambda: make_assistant("other", directory="/srv/one"))
    Assistant.objects.filter(pk=first.pk).update(removed_at=clock.now())
    make_assistant("daily", directory="/srv/one")


def test_the_first_reason_of_a_disabled_assistant_stands_and_enabling_forgets_failures():
    one = make_assistant(failures=3, not_before=clock.now())

    assert Assistant.objects.disable(one.pk, "3 failures in a row")
    assert not Assistant.objects.disable(one.pk, "a person")
    one.refresh_from_db()
    assert one.disabled_reason == "3 failures in a row"
    assert Assistant.objects.enable(one.pk)
    assert not Assistant.objects.enable(one.pk)
    one.refresh_from_db()
    assert (one.failures, one.not_before, one.disabled_at) == (0, None, None)


@pytest.mark.parametrize(
    "fields",
    [
        {"every_s": None, "cron": ""},
        {"every_s": 60, "cron": "* * * * *"},
        {"every_s": 0},
        {"missed": "once-if-younger-than"},
    ],
)
def test_a_schedule_is_an_interval_or_a_cron(fields):
    assistant = make_assistant()

    assert refused(
        lambda: Schedule.objects.create(assistant=assistant, **{"every_s": 60, **fields})
    )


def test_only_schedules_of_those_that_may_be_woken_are_due():
    now = clock.now()
    due = make_schedule(next_at=now)
    make_schedule(next_at=now + dt.timedelta(seconds=1))
    make_schedule(make_assistant(disabled_at=now), next_at=now)
    make_schedule(make_assistant(removed_at=now), next_at=now)

    assert list(Schedule.objects.due(now)) == [due]


def test_a_schedule_goes_on_once_from_each_slot():
    now = clock.now()
    later = now + dt.timedelta(hours=1)
    one = make_schedule(next_at=now)

    assert Schedule.objects.advance(one.pk, seen=now, to=later)
    assert not Schedule.objects.advance(one.pk, seen=now, to=later)


def test_a_planned_slot_has_one_row_and_calls_by_hand_any_number():
    schedule = make_schedule()
    slot = {"schedule": schedule, "trigger": "schedule", "planned_at": clock.now()}
    make_wakeup(schedule.assistant, **slot)

    assert refused(lambda: make_wakeup(schedule.assistant, **slot))
    make_wakeup(schedule.assistant, planned_at=slot["planned_at"])
    make_wakeup(schedule.assistant, planned_at=slot["planned_at"])


def test_one_process_takes_a_wakeup_and_one_wakeup_of_an_assistant_runs():
    first = make_wakeup()
    second = make_wakeup(first.assistant)

    assert Wakeup.objects.claim(first.pk, "me", 30)
    assert not Wakeup.objects.claim(first.pk, "you", 30)
    assert refused(lambda: Wakeup.objects.claim(second.pk, "you", 30))
    assert Wakeup.objects.renew(first.pk, "me", 30)
    assert not Wakeup.objects.renew(first.pk, "you", 30)
    assert not Wakeup.objects.end(first.pk, "you", "succeeded")
    assert Wakeup.objects.end(first.pk, "me", "succeeded")
    assert not Wakeup.objects.end(first.pk, "me", "failed")
    assert Wakeup.objects.claim(second.pk, "you", 30)


def test_a_lost_wakeup_ends_unless_it_gave_a_sign_of_life():
    lost = make_wakeup(state="running")
    Wakeup.objects.renew(lost.pk, "nobody", 30)

    assert not Wakeup.objects.end_lost(lost, "its process is gone")
    lost.refresh_from_db()
    assert Wakeup.objects.end_lost(lost, "its process is gone")
    lost.refresh_from_db()
    assert (lost.state, lost.outcome) == ("ended", "interrupted")
    assert not Wakeup.objects.skip(lost.pk, "missed")


def test_a_message_with_a_source_id_arrives_once():
    assistant = make_assistant()
    fields = {"assistant": assistant, "body": "hello", "source": "web", "source_id": "17"}
    InboxMessage.objects.create(**fields)

    assert refused(lambda: InboxMessage.objects.create(**fields))
    InboxMessage.objects.create(**{**fields, "source": "mail"})
    InboxMessage.objects.create(**{**fields, "source_id": ""})
    InboxMessage.objects.create(**{**fields, "source_id": ""})


def test_a_wakeup_consumes_what_it_was_given_and_nothing_else():
    wakeup = make_wakeup()
    given, later, taken_back = (
        InboxMessage.objects.create(assistant=wakeup.assistant, body=str(number))
        for number in range(3)
    )
    given.given_to.add(wakeup)
    taken_back.given_to.add(wakeup)
    assert InboxMessage.objects.withdraw(taken_back.pk)

    assert InboxMessage.objects.consume(wakeup) == 1
    assert InboxMessage.objects.consume(wakeup) == 0
    assert list(InboxMessage.objects.waiting()) == [later]
    assert not InboxMessage.objects.withdraw(given.pk)


def test_an_item_is_decided_once_and_delivered_only_when_approved():
    item, other = make_item(), make_item()

    assert not OutboxItem.objects.mark_delivered(item.pk)
    assert OutboxItem.objects.decide(item.pk, "approved")
    assert not OutboxItem.objects.decide(item.pk, "rejected")
    assert OutboxItem.objects.mark_delivered(item.pk)
    assert not OutboxItem.objects.mark_delivered(item.pk)
    assert OutboxItem.objects.decide(other.pk, "rejected")
    assert not OutboxItem.objects.decide(other.pk, "approved")
    assert refused(lambda: OutboxItem.objects.filter(pk=other.pk).update(state="delivered"))
    assert refused(lambda: OutboxItem.objects.filter(pk=other.pk).update(state="pending"))


def test_a_delivery_is_sent_by_one_process_and_what_it_left_open_stays_unknown():
    destination = Destination.objects.create(name="log", kind="file")
    item = make_item()
    one = Delivery.objects.create(item=item, destination=destination)

    assert refused(lambda: Delivery.objects.create(item=item, destination=destination))
    Delivery.objects.create(item=item, destination=destination, number=2)
    assert Delivery.objects.claim(one.pk, "me", 30)
    assert not Delivery.objects.claim(one.pk, "you", 30)
    assert not Delivery.objects.finish(one.pk, "you", "sent")
    one.refresh_from_db()
    assert Delivery.objects.mark_unknown(one, "killed while sending")
    assert not Delivery.objects.claim(one.pk, "you", 30)
    assert not Delivery.objects.finish(one.pk, "me", "sent")


def test_a_failed_delivery_waits_for_its_time():
    destination = Destination.objects.create(name="log", kind="file")
    one = Delivery.objects.create(item=make_item(), destination=destination)
    Delivery.objects.claim(one.pk, "me", 30)
    soon = clock.now() + dt.timedelta(minutes=1)

    assert Delivery.objects.finish(one.pk, "me", "failed", next_at=soon, error="503")
    assert not Delivery.objects.claim(one.pk, "me", 30)
    Delivery.objects.filter(pk=one.pk).update(next_at=clock.now())
    assert Delivery.objects.claim(one.pk, "me", 30)
    one.refresh_from_db()
    assert one.attempts == 2


def test_memory_is_reviewed_once_and_trusted_only_when_accepted():
    assistant = make_assistant()
    fields = {"assistant": assistant, "moment": "after", "digest": "0" * 64}
    plain = MemorySnapshot.objects.create(**fields)
    held = MemorySnapshot.objects.create(review="waiting", **fields)

    assert list(MemorySnapshot.objects.trusted()) == [plain]
    assert MemorySnapshot.objects.review(held.pk, "accepted")
    assert not MemorySnapshot.objects.review(held.pk, "rejected")
    assert set(MemorySnapshot.objects.trusted()) == {plain, held}
