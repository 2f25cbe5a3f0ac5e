"""Secrets in what a wakeup remembered are named, never shown, and pass with a reason alone."""

from __future__ import annotations

import base64

import pytest
from django.urls import reverse

from assistants import memory
from assistants.memory import scanning
from runs.refusal import Refusal
from tests.assistants.memory.conftest import wake, writing
from tests.site.pages import make_item, somebody

pytestmark = pytest.mark.django_db
HELD = "held-secret-7-battery-horse"
TOKEN = "gh" + "p_" + "a1B2" * 9


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", HELD)


@pytest.fixture
def client(client):
    client.force_login(somebody("ada", "administrator"))
    return client


def lines(snapshot) -> str:
    return "\n".join(each.line for each in memory.findings(snapshot))


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("note", f"a\nkey = {HELD}\n", "note: line 2: a secret of this host, OPENAI_API_KEY"),
        ("note", base64.b64encode(HELD.encode()).decode(), "OPENAI_API_KEY (base64)"),
        (f"x-{HELD}", "", "the names of its files: line 1: a secret of this host"),
        ("note", TOKEN, "note: line 1: a GitHub token"),
    ],
)
def test_what_may_be_a_secret_is_named_with_its_place_and_not_shown(held, client, name, text, told):
    after = wake(held, writing(name, text))

    assert told in lines(after)
    assert HELD not in lines(after)
    page = client.get(reverse("memory", args=[after.pk])).content.decode()
    assert page.index("Look at this first") < page.index("What changed")
    assert HELD not in page


def test_it_is_accepted_with_a_reason_alone_on_every_way(held, client):
    after = wake(held, writing("note", f"key = {HELD}\n"))
    form = {"verdict": "approve", "digest": after.digest}

    with pytest.raises(Refusal, match="needs a reason") as refused:
        memory.accept(held, after)
    assert HELD not in str(refused.value)
    assert client.post(reverse("memory-review", args=[after.pk]), form).status_code == 409
    after.refresh_from_db()
    assert after.review == "waiting"

    form["reason"] = "it was revoked"
    client.post(reverse("memory-review", args=[after.pk]), form)
    after.refresh_from_db()
    assert (after.review, after.reason) == ("accepted", "it was revoked")


def test_the_gate_names_it_before_the_text_that_leaves(held, client):
    after = wake(held, writing("note", f"key = {HELD}\n"))
    item = make_item(held, "all is well", wakeup=after.wakeup)

    page = client.get(reverse("outbox-item", args=[item.pk])).content.decode()

    assert page.index("A secret in what it wants to remember?") < page.index("What leaves")
    assert HELD not in page


def test_of_more_than_can_be_looked_at_that_is_said(held, monkeypatch):
    monkeypatch.setattr(scanning, "ALL_BYTES", 3)
    after = wake(held, lambda place: [(place / name).write_text("abc") for name in "ab"])
    assert [each.is_unchecked for each in memory.findings(after)] == [True]


def test_a_memory_that_is_plain_or_cannot_be_read_is_told_apart(held):
    after = wake(held, writing("note", "plain\n"))
    assert memory.findings(after) == []
    after.digest = "0" * 64
    (found,) = memory.findings(after)
    assert found.is_unchecked
