"""The page of a memory says who may accept it, and when that would go back behind a newer one."""

from __future__ import annotations

import pytest
from django.urls import reverse

from assistants.models import InboxMessage, MemorySnapshot
from runs import clock
from tests.factories import make_assistant, make_wakeup
from tests.site.pages import somebody

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def state_directory(tmp_path, settings):
    settings.SANDUK_HOME = tmp_path
    settings.SANDUK_FOUR_EYES = None


@pytest.fixture
def ada(client):
    found = somebody("ada", "administrator")
    client.force_login(found)
    return found


@pytest.fixture
def held(tmp_path):
    assistant = make_assistant("daily", directory=str(tmp_path / "daily"))
    return MemorySnapshot.objects.create(
        assistant=assistant, moment="after", digest="a" * 64, review="waiting",
        wakeup=make_wakeup(assistant, state="ended"),
    )  # fmt: skip


def shown(client, snapshot) -> str:
    return client.get(reverse("memory", args=[snapshot.pk])).content.decode()


def decide(client, snapshot, verdict: str, **fields: str):
    form = {"digest": snapshot.digest, "verdict": verdict, "reason": "read it", **fields}
    answer = client.post(reverse("memory-review", args=[snapshot.pk]), form)
    snapshot.refresh_from_db()
    return answer


def test_who_told_it_something_sees_why_and_no_button_and_may_reject(client, held, ada, settings):
    message = InboxMessage.objects.create(assistant=held.assistant, body="hi", author=ada)
    message.given_to.add(held.wakeup)
    assert 'value="approve"' in shown(client, held)
    settings.SANDUK_FOUR_EYES = True
    page = shown(client, held)
    assert 'value="approve"' not in page
    assert 'value="restore"' not in page
    assert 'value="reject"' in page
    assert "somebody else accepts or restores it" in page
    for verdict in ("approve", "restore"):
        assert decide(client, held, verdict).status_code == 409
        assert held.review == "waiting"
    decide(client, held, "reject")
    assert held.review == "rejected"


def test_going_back_behind_a_newer_memory_is_told_first_and_ticked_outright(client, held, ada):
    newer = MemorySnapshot.objects.create(
        assistant=held.assistant, moment="after", digest="b" * 64, review="accepted",
        reviewed_at=clock.now(), reviewed_by="ben",
    )  # fmt: skip
    page = shown(client, held)
    assert f"goes back behind memory {newer.pk}, accepted by ben at" in page
    assert "superseded" in page
    assert "superseded" in client.get(reverse("assistant", args=["daily"])).content.decode()
    for given in ({}, {"behind": ""}, {"behind": str(held.pk)}):
        answer = decide(client, held, "approve", **given)
        assert answer.status_code == 409
        assert f"goes back behind memory {newer.pk}" in answer.content.decode()
        assert held.review == "waiting"
    assert decide(client, held, "approve", behind=str(newer.pk)).status_code == 302
    assert held.review == "accepted"
    assert "superseded" not in shown(client, held)
