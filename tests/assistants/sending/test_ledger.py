"""The ledger of deliveries: each item once to each place, whoever is slow, broken or gone."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest
from django.db import connection, connections

from assistants import destinations
from assistants.delivery import deliver_due, recover, sending
from assistants.models import Delivery, Destination, OutboxItem
from runs import clock, lease
from runs.models import AuditEvent
from runs.refusal import Refusal
from runs.verdicts import Person
from tests.assistants.sending.making import (
    approve,
    delivery_to,
    make_destination,
    make_item,
    reject,
)
from tests.factories import make_assistant

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Person(account="root")


def log_to(path: Path, *assistants, name: str = "log") -> Destination:
    return make_destination(name, "file", *assistants, path=str(path))


def shell(name: str, text: str, *assistants, **how) -> Destination:
    return make_destination(name, "command", *assistants, argv=["/bin/sh", "-c", text], **how)


def bodies(path: Path) -> list[str]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line)["body"] for line in lines]


def state_of(item: OutboxItem) -> str:
    return OutboxItem.objects.get(pk=item.pk).state


@pytest.fixture
def later(monkeypatch):
    """Let time pass."""
    real, passed = clock.now, [0.0]
    monkeypatch.setattr(clock, "now", lambda: real() + dt.timedelta(seconds=passed[0]))

    def step(seconds: float) -> None:
        passed[0] += seconds

    return step


def test_an_approved_item_goes_to_each_destination_once(tmp_path: Path, receiver):
    assistant = make_assistant()
    log_to(tmp_path / "log", assistant)
    make_destination("hook", "webhook", assistant, url=receiver.url, allow_lan=True)
    item = make_item(assistant)

    assert deliver_due().sent == 2
    assert deliver_due().sent == 0
    assert bodies(tmp_path / "log") == ["hello"]
    assert [body["body"] for body in receiver.bodies()] == ["hello"]
    item.refresh_from_db()
    assert item.state == "delivered"
    assert item.delivered_at is not None


def test_what_waits_or_was_rejected_or_expired_is_never_sent(tmp_path: Path, later):
    assistant = make_assistant()
    log_to(tmp_path / "log", assistant)
    held, rejected = make_item(assistant, "held", hold=True), make_item(assistant, "no", hold=True)
    expired = make_item(assistant, "late", hold=True, expires_s=60)
    reject(rejected, ROOT)
    later(61)

    assert deliver_due() == sending.Delivered()
    assert bodies(tmp_path / "log") == []
    assert state_of(expired) == "expired"
    approve(held, ROOT)
    assert deliver_due().sent == 1
    assert bodies(tmp_path / "log") == ["held"]


def test_one_failing_destination_and_one_failing_item_hold_nobody_up(tmp_path: Path):
    """S-6: the first entry fails for ever, everything else goes out."""
    assistant = make_assistant()
    shell("broken", "exit 1", assistant)
    shell("picky", f"grep -q good && echo x >> {tmp_path}/picky", assistant)
    log_to(tmp_path / "log", assistant)
    for body in ("bad", "good one", "good two"):
        make_item(assistant, body)

    done = deliver_due()
    assert (done.sent, done.failed) == (5, 4)
    assert bodies(tmp_path / "log") == ["bad", "good one", "good two"]
    assert (tmp_path / "picky").read_text() == "x\nx\n"
    assert set(OutboxItem.objects.values_list("state", flat=True)) == {"approved"}


def test_a_slow_destination_keeps_nobody_waiting(tmp_path: Path):
    assistant = make_assistant()
    shell("slow", "sleep 4", assistant)
    shell("quick", f"date +%s.%N > {tmp_path}/quick", assistant)
    make_item(assistant)
    started = time.time()

    assert deliver_due().sent == 2
    assert float((tmp_path / "quick").read_text()) - started < 3.5


def test_a_destination_that_is_down_is_not_asked_for_every_item(tmp_path: Path):
    assistant = make_assistant()
    shell("down", f"echo x >> {tmp_path}/asked; exit 1", assistant)
    for _ in range(8):
        make_item(assistant)

    assert deliver_due().failed == 3
    assert (tmp_path / "asked").read_text() == "x\n" * 3
    assert deliver_due().failed == 3


def test_a_failed_delivery_is_tried_again_later_and_later_and_given_up(tmp_path: Path, later):
    assistant = make_assistant()
    down = shell(
        "down", f"echo $SANDUK_DELIVERY_ID >> {tmp_path}/keys; echo why; exit 1", assistant
    )
    item = make_item(assistant)

    waits = []
    for _ in range(sending.ATTEMPTS_MAX - 1):
        assert deliver_due().failed == 1
        assert deliver_due() == sending.Delivered()
        waits.append(round((delivery_to(down).next_at - clock.now()).total_seconds(), -1))
        later(3601)
    assert waits == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert deliver_due().given_up == 1
    later(7200)
    assert deliver_due() == sending.Delivered()
    last = delivery_to(down)
    assert (last.state, last.attempts, last.output) == ("given_up", 10, "why\n")
    assert last.error == "it exited with 1"
    assert len(set((tmp_path / "keys").read_text().split())) == 1
    assert state_of(item) == "approved"
    assert AuditEvent.objects.filter(action="delivery.given_up").count() == 1


def test_what_cannot_help_is_not_tried_again(receiver):
    assistant = make_assistant()
    hook = make_destination("hook", "webhook", assistant, url=receiver.url)
    make_item(assistant)

    assert deliver_due().given_up == 1
    assert "127.0.0.1 is not public" in delivery_to(hook).error


def test_a_destination_whose_settings_are_of_another_version_is_given_up():
    assistant = make_assistant()
    odd = make_destination("odd", "file", assistant, place="/x")
    make_item(assistant)

    assert deliver_due().given_up == 1
    assert "cannot be used" in delivery_to(odd).error


def test_a_sender_that_breaks_is_unknown_and_holds_nobody_up(tmp_path: Path, monkeypatch, caplog):
    assistant = make_assistant()
    make_destination("hook", "webhook", assistant, url="http://h/")
    log_to(tmp_path / "log", assistant)
    make_item(assistant)

    def broken(*_: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setitem(sending._SENDERS, "webhook", broken)
    done = deliver_due()
    assert (done.sent, done.unknown) == (1, 1)
    assert "broke off" in caplog.text


def test_ten_deliverers_at_once_send_once(tmp_path: Path):
    assistant = make_assistant()
    counter = shell("counter", f"echo $SANDUK_ITEM_ID >> {tmp_path}/count", assistant)
    log_to(tmp_path / "log", assistant)
    pks = [make_item(assistant, str(number)).pk for number in range(5)]

    def deliver(_: int) -> int:
        try:
            return deliver_due().sent
        finally:
            connections.close_all()

    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(deliver, range(10))) == 10
    assert sorted(map(int, (tmp_path / "count").read_text().split())) == pks
    assert sorted(bodies(tmp_path / "log")) == list("01234")
    assert set(OutboxItem.objects.values_list("state", flat=True)) == {"delivered"}
    assert set(Delivery.objects.filter(destination=counter).values_list("attempts")) == {(1,)}


def test_a_killed_command_leaves_the_delivery_unknown_until_a_person_says(tmp_path: Path):
    assistant = make_assistant()
    slow = shell("slow", "sleep 30", assistant, timeout_s=1)
    first, second = make_item(assistant), make_item(assistant)

    assert deliver_due().unknown == 2
    assert deliver_due() == sending.Delivered()
    assert AuditEvent.objects.filter(action="delivery.unknown").count() == 2
    assert destinations.arrived(first) == 1
    assert state_of(first) == "delivered"
    Destination.objects.filter(pk=slow.pk).update(config={"argv": ["true"]})
    (again,) = destinations.again(second)
    assert again.number == 2
    assert again.key != Delivery.objects.get(item=second, number=1).key
    assert deliver_due().sent == 1
    assert state_of(second) == "delivered"


def test_again_leaves_out_who_has_it_unless_all_have(tmp_path: Path):
    assistant = make_assistant()
    log_to(tmp_path / "log", assistant)
    down = shell("down", "kill -9 $$", assistant)
    item = make_item(assistant)
    deliver_due()

    assert [each.destination for each in destinations.again(item)] == [down]
    with pytest.raises(Refusal, match=r"no delivery of item .* is over yet"):
        destinations.again(item, to="down")  # its second one waits yet
    Destination.objects.filter(pk=down.pk).update(config={"argv": ["true"]})
    deliver_due()
    assert state_of(item) == "delivered"
    assert len(destinations.again(item)) == 2
    assert len(destinations.again(make_delivered(assistant), to="log")) == 1
    assert deliver_due().sent == 1
    assert sorted(bodies(tmp_path / "log")) == ["hello", "hello", "other", "other"]


def make_delivered(assistant) -> OutboxItem:
    item = make_item(assistant, "other")
    deliver_due()
    return item


def test_only_what_was_approved_goes_out_again():
    item = make_item(hold=True)

    with pytest.raises(Refusal, match="only what was approved"):
        destinations.again(item)
    with pytest.raises(Refusal, match="unknown"):
        destinations.arrived(item)


def test_a_removed_destination_gives_up_what_was_on_its_way(tmp_path: Path):
    assistant = make_assistant()
    log_to(tmp_path / "log", assistant)
    item = make_item(assistant)

    assert destinations.remove("log") == 1
    assert deliver_due() == sending.Delivered()
    assert state_of(item) == "approved"
    assert not Delivery.objects.exclude(state="given_up").exists()
    make_item(assistant)
    assert Delivery.objects.count() == 1
    log_to(tmp_path / "log", assistant)


def test_the_sender_of_a_living_process_is_not_taken_for_gone(later):
    assistant = make_assistant()
    log = log_to(Path("/nowhere"), assistant)
    make_item(assistant)
    one = delivery_to(log)
    assert Delivery.objects.claim(one.pk, lease.owner(), 30)

    later(86400)  # the wall clock alone decides nothing about it
    assert recover() == 0
    assert delivery_to(log).state == "sending"


def test_of_another_machines_sender_its_lease_tells(later):
    assistant = make_assistant()
    log = log_to(Path("/nowhere"), assistant)
    make_item(assistant)
    assert Delivery.objects.claim(delivery_to(log).pk, "other/boot/1/2/3", 30)

    assert recover() == 0
    later(31)
    assert recover() == 1
    assert delivery_to(log).state == "unknown"


def database_url() -> str:
    """The test's database, for another process."""
    found = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{found['NAME']}"
    who = f"{found['USER']}:{found['PASSWORD']}@" if found["USER"] else ""
    port = f":{found['PORT']}" if found["PORT"] else ""
    return f"{connection.vendor}://{who}{quote(found['HOST'], safe='')}{port}/{found['NAME']}"


KILLED = """
import django; django.setup()
from assistants.delivery import deliver_due
deliver_due()
"""


@pytest.mark.parametrize("step", ["before", "after"])
def test_kill_9_in_the_middle_of_sending_is_unknown_and_never_sent_twice(tmp_path: Path, step):
    """The process dies while the receiver works, before or after it has taken the item."""
    assistant = make_assistant()
    early = f"echo x >> {tmp_path}/got; " if step == "after" else ""
    slow = shell("slow", f"{early}touch {tmp_path}/begun; sleep 60", assistant)
    log = log_to(tmp_path / "log", assistant)
    item = make_item(assistant)
    env = {**os.environ, "DATABASE_URL": database_url(), "SANDUK_HOME": str(tmp_path / "state")}
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED],
        env={**env, "DJANGO_SETTINGS_MODULE": "sanduk_site.settings"},
    )
    try:
        deadline = time.monotonic() + 60
        settled = Delivery.objects.filter(destination=log, state=Delivery.State.SENT)
        while not (tmp_path / "begun").exists() or not settled.exists():
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        assert deliver_due() == sending.Delivered()  # somebody else is at it
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()

    assert deliver_due().unknown == 1
    assert deliver_due() == sending.Delivered()
    one = delivery_to(slow)
    assert (one.state, one.attempts, one.lease_owner) == ("unknown", 1, "")
    assert "may have arrived" in one.error
    assert bodies(tmp_path / "log") == ["hello"]
    assert state_of(item) == "approved"
