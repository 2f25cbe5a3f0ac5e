"""What is said of one destination touches no other, and a removed one can be replaced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assistants import destinations
from assistants.delivery import deliver_due
from assistants.models import Delivery, OutboxItem
from runs import clock
from runs.refusal import Refusal
from tests.assistants.sending.making import act, delivery_to, make_destination, make_item
from tests.factories import make_assistant

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def ready(monkeypatch):
    """The test's database is there: no command makes one."""
    monkeypatch.setattr("runs.management.terminal.prepare", lambda: None)


def shell(name: str, text: str, *assistants):
    return make_destination(name, "command", *assistants, argv=["/bin/sh", "-c", text])


def states(item: OutboxItem) -> dict[str, str]:
    rows = Delivery.objects.filter(item=item).order_by("number", "pk")
    return {each.destination.name: each.state for each in rows.select_related("destination")}


def test_a_command_by_hand_uses_up_no_try_of_another_destination(tmp_path: Path):
    assistant = make_assistant()
    down = shell("down", f"echo x >> {tmp_path}/tried; exit 1", assistant)
    item = make_item(assistant)
    deliver_due()
    before = delivery_to(down)

    assert act("outbox", "--deliver", "cat > /dev/null") == 0

    after = delivery_to(down)
    assert (after.attempts, after.next_at) == (1, before.next_at)
    assert (tmp_path / "tried").read_text() == "x\n"
    assert item.pk == after.item_id


@pytest.mark.parametrize("words", [["--again"], []])
def test_delivering_to_one_leaves_a_failed_one_to_its_time(tmp_path: Path, words):
    assistant = make_assistant()
    down = shell("down", "exit 1", assistant)
    log = make_destination("log", "file", assistant, path=str(tmp_path / "log"))
    item = make_item(assistant)
    deliver_due()

    assert act("deliver", str(item.pk), *words, "--to", "log") == 0

    assert delivery_to(down).attempts == 1
    assert Delivery.objects.filter(destination=log).count() == 1 + len(words)
    assert act("deliver", str(item.pk), "--to", "down") == 1
    assert delivery_to(down).attempts == 2


def test_of_two_unknown_deliveries_one_arrived_and_the_other_did_not(tmp_path: Path, capsys):
    assistant = make_assistant()
    for name in ("one", "two"):
        shell(name, "kill -9 $$", assistant)
    item = make_item(assistant)
    assert deliver_due().unknown == 2

    assert act("deliver", str(item.pk), "--arrived", "--to", "one", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["destination"], row["state"]) == ("one", "sent")
    assert states(item) == {"one": "sent", "two": "unknown"}
    assert act("deliver", str(item.pk), "--arrived", "--to", "one") == 2
    assert "to one is unknown" in capsys.readouterr().err


def test_a_destination_put_in_a_removed_ones_place_gets_what_that_did_not(tmp_path: Path):
    assistant = make_assistant()
    shell("ca", "exit 1", assistant)
    item = make_item(assistant)
    deliver_due()
    destinations.remove("ca")
    with pytest.raises(Refusal, match=r"ca was removed: .* sanduk destination add ca"):
        destinations.again(item, to="ca")
    make_destination("ca", "file", path=str(tmp_path / "got"))

    assert act("deliver", str(item.pk), "--again", "--to", "ca") == 0

    assert json.loads((tmp_path / "got").read_text())["number"] == 2
    item.refresh_from_db()
    assert item.state == "delivered"
    with pytest.raises(Refusal, match="has no delivery to elsewhere"):
        destinations.again(item, to="elsewhere")


def test_what_has_no_delivery_there_says_where_it_may_go(tmp_path: Path, capsys):
    item = make_item(make_assistant())
    make_destination("ca", "file", path=str(tmp_path / "got"))

    for words in (["--again", "--to", "ca"], ["--to", "ca"], ["--again"]):
        assert act("deliver", str(item.pk), *words) == 2
        assert "has no delivery" in capsys.readouterr().err
    assert not (tmp_path / "got").exists()


@pytest.mark.parametrize(("asked", "within"), [("7200", 7200), ("1", 30), ("9999999", 86400)])
def test_a_receiver_that_asks_for_time_has_it_up_to_a_day(receiver, asked, within):
    assistant = make_assistant()
    hook = make_destination("hook", "webhook", assistant, url=receiver.url, allow_lan=True)
    receiver.status, receiver.headers = 503, {"Retry-After": asked}
    make_item(assistant)

    assert deliver_due().failed == 1

    after = (delivery_to(hook).next_at - clock.now()).total_seconds()
    assert within - 30 < after <= within
