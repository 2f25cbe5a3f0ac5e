"""An item that waits for long is told of once, to who asked for that, and not with what it says."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from assistants import collaborators
from assistants.models import Assistant, Destination, OutboxItem
from assistants.reminding import remind_due
from runs import clock
from runs.models import AuditEvent
from runs.verdicts import Person
from tests.assistants.sending.making import act, approve, make_destination, make_item
from tests.factories import make_assistant

pytestmark = pytest.mark.django_db(transaction=True)
HOUR_S = 3600


@pytest.fixture
def daily(tmp_path: Path) -> Assistant:
    """One whose reminders come after four hours."""
    made = make_assistant("daily")
    reminded(made, tmp_path / "told", after_s=4 * HOUR_S)
    return made


def reminded(assistant: Assistant, path: Path, *, after_s: int, name: str = "me") -> Destination:
    found = make_destination(name, "file", assistant, path=str(path))
    Destination.objects.filter(pk=found.pk).update(remind_after_s=after_s)
    return found


def waiting(assistant: Assistant, hours: float, body: str = "secret plans") -> OutboxItem:
    item = make_item(assistant, body, hold=True)
    at = clock.now() - dt.timedelta(hours=hours)
    OutboxItem.objects.filter(pk=item.pk).update(created_at=at)
    return item


def told(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_items_that_wait_long_are_one_reminder_and_each_is_told_of_once(tmp_path, daily):
    oldest = waiting(daily, 5)
    waiting(daily, 4.1)
    waiting(daily, 1)

    assert remind_due() == 2
    assert remind_due() == 0

    (parcel,) = told(tmp_path / "told")
    assert (parcel["item"], parcel["reminder"], parcel["assistant"]) == (oldest.pk, True, "daily")
    assert "3 items wait for a decision, the oldest for 5h 00m" in parcel["body"]
    assert "sanduk outbox --pending --name daily" in parcel["body"]
    assert "secret plans" not in json.dumps(parcel)
    assert AuditEvent.objects.filter(action="reminder.send").count() == 1


def test_what_comes_to_wait_long_later_is_a_reminder_of_its_own(tmp_path, daily):
    waiting(daily, 5)
    remind_due()
    waiting(daily, 4.5)

    assert remind_due() == 1
    assert len(told(tmp_path / "told")) == 2


def test_nobody_is_reminded_of_what_was_decided_or_came_just_now(tmp_path, daily):
    approve(waiting(daily, 5), Person(account="root"))
    waiting(daily, 3)
    gone = make_assistant("gone", removed_at=clock.now())
    reminded(gone, tmp_path / "gone", after_s=60, name="other")
    waiting(gone, 5)

    assert remind_due() == 0


def test_a_destination_that_did_not_ask_for_reminders_gets_none(tmp_path, daily):
    make_destination("log", "file", daily, path=str(tmp_path / "log"))
    waiting(daily, 5)

    collaborators.deliver_due()

    assert len(told(tmp_path / "told")) == 1
    assert told(tmp_path / "log") == []


def test_a_reminder_that_does_not_arrive_is_written_down_and_holds_up_no_other(tmp_path, daily):
    broken = make_destination("broken", "command", daily, argv=["/bin/false"])
    Destination.objects.filter(pk=broken.pk).update(remind_after_s=9 * HOUR_S)
    waiting(daily, 5)

    assert remind_due() == 1
    assert remind_due() == 0

    assert len(told(tmp_path / "told")) == 1
    failed = AuditEvent.objects.get(action="reminder.failed")
    assert failed.detail == {"destination": "broken", "why": "it exited with 1"}


def test_reminders_are_asked_for_with_the_destination(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("runs.management.terminal.prepare", lambda: None)
    make_assistant("daily")
    words = ("destination", "add", "me", "--file", str(tmp_path / "told"), "--for", "daily")

    assert act(*words, "--reminders", "4h") == 0
    assert Destination.objects.get().remind_after_s == 4 * HOUR_S
    assert act(*words, "--reminders", "never") == 2
    assert act(*words) == 0
    assert Destination.objects.get().remind_after_s == 4 * HOUR_S
    assert act(*words, "--reminders", "none") == 0
    assert Destination.objects.get().remind_after_s is None

    waiting(Assistant.objects.get(), 5)
    capsys.readouterr()
    assert act("outbox", "--pending") == 0
    assert "1 item waits for a decision, for 5h 00m" in capsys.readouterr().err
