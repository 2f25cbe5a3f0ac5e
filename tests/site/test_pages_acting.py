"""What a person does from a page: stop, repeat, tell, wake, switch, accept, restore."""

from __future__ import annotations

import datetime as dt
import os

import pytest
from django.db import connection
from django.urls import reverse

from assistants import memory
from assistants.models import InboxMessage, MemorySnapshot, Wakeup
from runs.models import AuditEvent, Decision, Run, RunEvent
from tests.accounts import ORDINARY
from tests.factories import make_assistant, make_run, make_schedule, make_wakeup
from tests.site.pages import somebody

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def state_directory(tmp_path, settings):
    settings.SANDUK_HOME = tmp_path / "home"
    settings.SANDUK_HOME.mkdir(mode=0o700)


@pytest.fixture
def ada():
    return somebody("ada", "administrator")


@pytest.fixture
def client(client, ada):
    client.force_login(ada)
    return client


def post(client, name: str, *args, **form: str):
    return client.post(reverse(name, args=args), form, follow=True)


def said(answer) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


def test_a_queued_run_is_cancelled_and_a_running_one_asked_by_name(client, ada):
    queued, running = make_run(), make_run(state="running")
    assert "cancelled" in said(post(client, "run-stop", queued.uid))
    assert "asked to stop" in said(post(client, "run-stop", running.uid))
    queued.refresh_from_db()
    running.refresh_from_db()
    assert queued.outcome == "cancelled"
    assert running.stop_requested_by == "ada"
    assert {event.actor for event in AuditEvent.objects.filter(action="run.stop")} == {ada}
    assert "ended already" in said(post(client, "run-stop", make_run(state="ended").uid))


def test_a_run_is_repeated_as_it_was_ordered_and_no_form_can_change_it(client, ada, tmp_path):
    place = tmp_path / "work"
    place.mkdir()
    if os.geteuid() == 0:
        os.chown(place, ORDINARY, ORDINARY)  # no agent runs as root
    old = make_run(
        state="ended", workspace=str(place), task="count", agent="claude", provider="rehearsal",
        order={"workdir": str(place), "agent": "claude", "provider": "rehearsal"},
    )  # fmt: skip
    answer = post(client, "run-again", old.uid, task="evil", workdir="/etc", mode="open")
    assert "queued" in said(answer)
    new = Run.objects.exclude(pk=old.pk).get()
    assert (new.task, new.workspace, new.mode) == ("count", str(place), "sealed")
    assert (new.state, new.trigger, new.requested_by) == ("queued", "web", ada)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"state": "running"}, "has not ended"),
        ({"state": "ended", "mode": "open"}, "terminal only"),
        ({"state": "ended", "order": {"shell": "tty"}}, "terminal only"),
        ({"state": "ended", "trigger": "change", "order": {"workdir": ""}}, "directory"),
        ({"state": "ended", "order": {"new_field": 1}}, "another version"),
    ],
)
def test_what_cannot_be_repeated_on_the_web_is_refused(client, fields, why):
    old = make_run(**fields)
    assert why in said(post(client, "run-again", old.uid))
    assert Run.objects.count() == 1


def test_a_message_is_told_by_a_person_and_taken_back_by_one(client, ada):
    assistant = make_assistant("daily")
    post(client, "assistant-tell", "daily", text="look at\r\nticket 7")
    message = InboxMessage.objects.get()
    assert (message.body, message.author, message.source) == ("look at\nticket 7", ada, "web")
    assert message.account == ""
    page = client.get(reverse("assistant", args=["daily"])).content.decode()
    assert "ticket 7" in page

    other = make_assistant("other")
    assert post(client, "assistant-untell", other.name, message.pk).status_code == 404
    post(client, "assistant-untell", assistant.name, message.pk)
    assert not InboxMessage.objects.waiting().exists()
    assert AuditEvent.objects.get(action="inbox.withdraw").actor == ada


def test_a_message_that_is_refused_is_not_lost(client):
    make_assistant("daily")
    answer = post(client, "assistant-tell", "daily", text="word " * 20_000)
    assert answer.status_code == 409
    assert "word word</textarea>" in answer.content.decode().replace(" </text", "</text")
    assert "empty" in said(post(client, "assistant-tell", "daily", text="  "))
    assert not InboxMessage.objects.exists()


def test_waking_rings_for_one_wakeup_and_says_who_asked(client, ada, monkeypatch):
    rung = []
    monkeypatch.setattr("assistants.working.ring", rung.append)
    make_assistant("daily")
    post(client, "assistant-wake", "daily")
    wakeup = Wakeup.objects.get()
    assert rung == [wakeup]
    assert wakeup.trigger == "hand"
    assert AuditEvent.objects.get(action="wakeup.ask").actor == ada
    assert "already" in said(post(client, "assistant-wake", "daily"))
    assert Wakeup.objects.count() == 1


def test_a_disabled_assistant_is_enabled_by_name_and_not_woken(client, ada):
    assistant = make_assistant("daily")
    make_schedule(assistant)
    post(client, "assistant-switch", "daily", to="disabled", reason="too chatty")
    assistant.refresh_from_db()
    assert assistant.disabled_reason == "by ada: too chatty"
    assert "is disabled" in said(post(client, "assistant-wake", "daily"))
    post(client, "assistant-switch", "daily", to="enabled")
    assistant.refresh_from_db()
    assert assistant.disabled_at is None
    actions = AuditEvent.objects.filter(action__startswith="assistant.")
    assert {event.actor for event in actions} == {ada}
    assert "does not say" in said(post(client, "assistant-switch", "daily", to="gone"))


def test_an_assistants_page_shows_the_next_five_fires_and_the_outcomes(client):
    assistant = make_assistant("daily")
    make_schedule(assistant, every_s=3600)
    run = make_run(state="ended")
    make_wakeup(assistant, state="ended", run=run)
    make_wakeup(assistant, state="ended", outcome="gate", reason="the gate said no")
    page = client.get(reverse("assistant", args=["daily"]))
    assert len(page.context["fires"]) == 5
    shown = page.content.decode()
    assert reverse("run", args=[run.uid]) in shown
    assert "the gate said no" in shown


def test_times_are_in_utc_whatever_zone_the_site_is_in(client, settings):
    settings.TIME_ZONE = "Asia/Tokyo"
    noon = dt.datetime(2026, 3, 9, 12, 34, 56, tzinfo=dt.UTC)
    run = make_run(state="ended", created_at=noon, started_at=noon, ended_at=noon)
    RunEvent.objects.create(run=run, sequence=1, at=noon, kind="text", text="hello")
    make_wakeup(make_assistant("daily"), state="ended", run=run, planned_at=noon)
    for address in (reverse("run", args=[run.uid]), reverse("assistant", args=["daily"])):
        shown = client.get(address).content.decode()
        assert "12:34" in shown, address
        assert "21:34" not in shown, address


@pytest.fixture
def remembered(tmp_path):
    """An assistant whose wakeup wrote a note that waits for review; the snapshots before, after."""
    home = tmp_path / "daily"
    (home / "workspace").mkdir(parents=True)
    (home / "brief.md").write_text("Look around.")
    note = home / "workspace" / "note.md"
    note.write_text("old line\n")
    assistant = make_assistant("daily", directory=str(home))
    wakeup = make_wakeup(assistant)
    before = memory.before_wakeup(assistant, wakeup)
    note.write_text("new line <b>\u202e\n")
    after = memory.after_wakeup(assistant, wakeup)
    return note, before, after


def test_the_task_of_the_next_wakeup_can_be_read_before(client, remembered):
    post(client, "assistant-tell", "daily", text="look at ticket 7")
    shown = client.get(reverse("assistant", args=["daily"])).content.decode()
    task = shown[shown.index("What the next wakeup is given") :]
    assert task.index("Look around.") < task.index("look at ticket 7")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"mode": "sealed"}, "The relay to openai and nothing else is in reach; the key stays"),
        ({"mode": "sealed", "order": {"allow_hosts": ["a.example:443"]}},
         "The relay to openai and, through the egress door, a.example:443 are in reach"),
        ({"mode": "sealed", "order": {"egress": "warn"}}, "every public host are in reach"),
        ({"mode": "key-safe"}, "The internet, the LAN and the relay to openai are in reach"),
        ({"mode": "open"}, "in reach; the key of openai is inside"),
        ({"mode": "no-network"}, "No network and no model are in reach"),
        ({"mode": "sealed", "order": {"mounts": ["a", "b"]}}, "and 2 more mounted place(s)"),
    ],
)  # fmt: skip
def test_a_runs_page_says_in_a_sentence_what_it_could_reach(client, fields, words):
    run = make_run(provider="openai", **fields)
    assert words in client.get(reverse("run", args=[run.uid])).content.decode()


def review(client, snapshot, verdict: str, **fields: str):
    form = {"digest": snapshot.digest, "verdict": verdict, **fields}
    answer = post(client, "memory-review", snapshot.pk, **form)
    snapshot.refresh_from_db()
    return answer


def test_a_memory_shows_its_difference_and_is_accepted_by_name(client, remembered, ada):
    _, _, after = remembered
    shown = client.get(reverse("memory", args=[after.pk])).content.decode()
    for words in ("-old line", "+new line &lt;b&gt;\\u202e", "note.md"):
        assert words in shown, words
    review(client, after, "approve")
    assert (after.review, after.reviewed_by) == ("accepted", "ada")
    assert Decision.objects.get().actor == ada
    assert "already" in said(review(client, after, "reject", reason="late"))
    assert after.review == "accepted"


def test_a_rejected_memory_needs_a_reason_and_is_put_back(client, remembered):
    note, _, after = remembered
    assert review(client, after, "reject").status_code == 409
    assert after.review == "waiting"
    review(client, after, "reject", reason="it takes orders")
    assert after.review == "rejected"
    assert note.read_text() == "old line\n"


def test_a_memory_is_restored_and_the_present_one_is_kept(client, remembered):
    note, before, _ = remembered
    answer = review(client, before, "restore")
    assert "holds snapshot" in said(answer)
    assert note.read_text() == "old line\n"
    assert MemorySnapshot.objects.count() >= 3


def test_a_memory_that_is_not_what_was_read_is_left_alone(client, remembered):
    _, _, after = remembered
    assert review(client, after, "approve", digest="0" * 64).status_code == 409
    assert after.review == "waiting"


@pytest.mark.django_db(transaction=True)
def test_the_audits_list_verifies_its_chain_when_asked(client):
    make_assistant("daily")
    post(client, "assistant-tell", "daily", text="hello")
    post(client, "assistant-switch", "daily", to="disabled")
    address = reverse("admin:runs_auditevent_changelist")
    assert "Verify the chain" in client.get(address).content.decode()
    assert "the chain stands" in client.get(f"{address}?chain=verify").content.decode()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_auditevent SET subject = 'assistant:other'")
    assert "the chain is broken" in client.get(f"{address}?chain=verify").content.decode()


def test_spend_keeps_exact_and_at_least_apart_in_the_table_and_the_file(client):
    make_run(state="ended", provider="openai", spent_usd=2.0, spent_tokens=10)
    make_run(state="ended", provider="openai", spent_usd=0.5, spent_is_lower_bound=True)
    answer = client.get(f"{reverse('spend')}?by=provider&days=7")
    line = answer.context["lines"][0]
    assert (line.exact_usd, line.least_usd, line.unsure) == (2.0, 0.5, 1)
    table = client.get(f"{reverse('spend')}?by=provider&days=7&format=csv").content.decode()
    assert "openai,2,0,10,2.000000,0.500000,1" in table
    for bad in ("by=x", "days=8", "days=x", "by=day&days=99999999999"):
        assert client.get(f"{reverse('spend')}?{bad}").status_code == 404
