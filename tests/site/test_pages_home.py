"""Home says what waits, what runs, what needs a look and what comes, in a fixed few questions."""

from __future__ import annotations

import datetime as dt

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from assistants import memory
from assistants.config import Config
from assistants.memory import scanning
from assistants.models import Delivery, Destination, InboxMessage, MemorySnapshot
from changes.models import Change
from runs import clock, pulse
from runs.models import RunEvent
from tests.changes.rows import reviewed
from tests.factories import make_assistant, make_run, make_schedule, make_wakeup
from tests.site.pages import make_item, somebody

pytestmark = pytest.mark.django_db
QUESTIONS = 25
OF_THE_GATE = 27


@pytest.fixture(autouse=True)
def state_directory(tmp_path, settings):
    settings.SANDUK_HOME = tmp_path
    pulse.stamp("worker")


@pytest.fixture
def client(client):
    client.force_login(somebody("ada", "administrator"))
    return client


def home(client) -> str:
    return client.get(reverse("home")).content.decode()


def fill(count: int) -> None:
    now = clock.now()
    place = Destination.objects.create(name=f"mail-{count}", kind="file", config={})
    for number in range(count):
        assistant = make_assistant(config=Config(daily_budget_usd=1.0))
        assistant.destinations.add(place)
        make_schedule(assistant, next_at=now + dt.timedelta(minutes=number))
        item = make_item(assistant, f"# Letter {number}")
        sent = make_item(assistant, "sent", state="approved", decided_at=now)
        Delivery.objects.create(item=sent, destination=place, state="unknown", ended_at=now)
        MemorySnapshot.objects.create(
            assistant=assistant, wakeup=item.wakeup, moment="after", digest="0", review="waiting"
        )
        live = make_run(state="running", started_at=now, spent_usd=0.5)
        make_wakeup(assistant, state="running", run=live)
        RunEvent.objects.create(run=live, sequence=1, at=now, kind="text", text="reading")
        make_run(state="ended", outcome="interrupted")
        off = make_assistant(disabled_at=now, disabled_reason="it failed")
        make_wakeup(off, state="ended", outcome="failed", ended_at=now)
        reviewed(task=f"change {number}")


@pytest.mark.parametrize("page", ["home", "outbox", "assistants", "spend", "system"])
def test_a_page_asks_few_questions_and_no_more_when_there_is_more(client, page):
    counts = []
    for count in (2, 6):
        fill(count)
        with CaptureQueriesContext(connection) as asked:
            assert client.get(reverse(page)).status_code == 200
        counts.append(len(asked))
    assert counts[0] == counts[1]
    assert counts[1] <= QUESTIONS


def test_a_run_and_an_item_ask_few_questions(client):
    fill(2)
    item = make_item(make_assistant("daily"), "# Letter")
    run = item.wakeup.run
    for number in range(1, 60):
        RunEvent.objects.create(run=run, sequence=number, at=clock.now(), kind="text", text="x")
    for address in (reverse("run", args=[run.uid]), reverse("outbox-item", args=[item.pk]),
                    reverse("assistant", args=["daily"])):  # fmt: skip
        with CaptureQueriesContext(connection) as asked:
            assert client.get(address).status_code == 200
        assert len(asked) <= (OF_THE_GATE if "outbox" in address else QUESTIONS), address


def test_what_waits_stands_oldest_first_with_its_risk_and_its_age(client):
    assistant, now = make_assistant("daily"), clock.now()
    make_item(assistant, "# Younger", created_at=now - dt.timedelta(hours=3))
    older = make_item(
        assistant, "# Older", created_at=now - dt.timedelta(days=2), unreviewed_memory=True
    )
    make_item(assistant, "# Gone", created_at=now, expires_at=now - dt.timedelta(seconds=1))
    shown = home(client)
    assert shown.index("Older") < shown.index("Younger")
    assert "from unreviewed memory" in shown
    assert "2 days ago" in shown
    assert "Gone" not in shown
    assert reverse("outbox-item", args=[older.pk]) in shown


def test_items_memories_and_changes_stand_in_one_list_by_their_age(client):
    now, assistant = clock.now(), make_assistant("daily")
    for days, title in ((5, "First"), (2, "Third")):
        make_item(assistant, f"# {title}", created_at=now - dt.timedelta(days=days))
    snapshot = MemorySnapshot.objects.create(
        assistant=assistant, moment="after", digest="0", review="waiting",
        taken_at=now - dt.timedelta(days=4),
    )  # fmt: skip
    change = reviewed()
    Change.objects.update(state_at=now - dt.timedelta(days=3))
    shown = home(client)
    marks = ["First", reverse("memory", args=[snapshot.pk]), reverse("change", args=[change.uid]),
             "Third"]  # fmt: skip
    assert sorted(marks, key=shown.index) == marks


def test_a_memory_shows_its_risks_as_an_item_does(client, tmp_path, monkeypatch):
    directory = tmp_path / "daily"
    (directory / "workspace").mkdir(parents=True)
    assistant = make_assistant("daily", config=Config(), directory=str(directory))
    wakeup = make_wakeup(assistant, state="running")
    memory.before_wakeup(assistant, wakeup)
    note = directory / "workspace" / "note"
    note.write_text(f"ghp_{'a1B2' * 9}")
    memory.after_wakeup(assistant, wakeup)
    assert "a secret in it?" in home(client)
    scanned = []
    monkeypatch.setattr(
        "assistants.memory.scanning._of_all", lambda *_: scanned.append(1) or iter(())
    )
    assert "a secret in it?" in home(client)
    assert not scanned  # what was found is kept


def test_a_memory_too_large_to_look_through_for_a_list_is_not_called_clear(client, tmp_path):
    directory = tmp_path / "daily"
    (directory / "workspace").mkdir(parents=True)
    assistant = make_assistant("daily", config=Config(), directory=str(directory))
    wakeup = make_wakeup(assistant, state="running")
    memory.before_wakeup(assistant, wakeup)
    (directory / "workspace" / "note").write_text("x" * (scanning.LIST_BYTES + 1))
    snapshot = memory.after_wakeup(assistant, wakeup)
    assert "not all could be checked" in home(client)
    assert memory.findings(snapshot) == []


def test_a_superseded_memory_and_one_for_somebody_else_say_so(client, settings, tmp_path):
    assistant, now = make_assistant("daily"), clock.now()
    for number, review in enumerate(("waiting", "accepted"), 1):
        MemorySnapshot.objects.create(
            assistant=assistant, moment="after", digest=str(number), review=review,
            reviewed_at=now if review == "accepted" else None,
            wakeup=make_wakeup(assistant, state="ended"),
        )  # fmt: skip
    shown = home(client)
    assert "superseded" in shown
    assert "waits for somebody else" not in shown
    settings.SANDUK_FOUR_EYES = True
    ada = get_user_model().objects.get(username="ada")
    held = MemorySnapshot.objects.get(review="waiting")
    message = InboxMessage.objects.create(assistant=assistant, body="hi", author=ada)
    message.given_to.add(held.wakeup)
    shown = home(client)
    assert "waits for somebody else" in shown
    assert "Nothing waits for you" in shown
    assert client.get(reverse("waiting")).json() == {"waiting": 0}


def test_what_runs_shows_its_last_line_and_can_be_stopped(client):
    run = make_run(state="running", started_at=clock.now(), order={"timeout_s": 1800})
    for number, text in enumerate(("first", "the latest line"), 1):
        RunEvent.objects.create(run=run, sequence=number, at=clock.now(), kind="text", text=text)
    shown = home(client)
    assert "the latest line" in shown
    assert "of 30m 00s" in shown
    assert reverse("run-stop", args=[run.uid]) in shown


def test_what_needs_a_look_is_named(client, settings):
    now = clock.now()
    make_assistant("broken", disabled_at=now, disabled_reason="three failures")
    make_run(state="ended", outcome="interrupted", reason="the host went away")
    assistant = make_assistant("daily")
    make_schedule(assistant, next_at=now)
    item = make_item(assistant, "sent", state="approved", decided_at=now)
    place = Destination.objects.create(name="mail", kind="file", config={})
    for number, state in enumerate(("failed", "unknown", "given_up"), 1):
        Delivery.objects.create(
            item=item, destination=place, number=number, state=state, error=f"why {state}"
        )
    settings.SANDUK_MIN_FREE_MB = 2**40
    shown = home(client)
    for words in (
        "broken is disabled", "three failures", "was interrupted", "the host went away",
        "why failed", "may or may not have arrived", "was given up", "MB are free",
    ):  # fmt: skip
        assert words in shown, words
    assert '<q class="sk-said">why failed</q>' in shown, "a destination's answer may be in it"
    assert '<q class="sk-said">the host went away</q>' not in shown


def test_a_worker_that_sleeps_is_told_of_and_one_that_works_is_not(client, tmp_path):
    make_schedule(make_assistant("daily"), next_at=clock.now())
    assert "The worker does not work" not in home(client)
    stamp = tmp_path / "pulse" / "worker"
    stamp.write_text((clock.now() - dt.timedelta(minutes=9)).isoformat())
    make_run(state="queued")
    assert "1 run(s) wait in the queue" in home(client)
    stamp.unlink()
    assert "No worker has ever run here" in home(client)


def test_an_empty_home_says_what_comes_next(client):
    shown = home(client)
    for words in ("Nothing waits for you", "No run is going on", "sanduk assistant new",
                  "No schedule is on", "the disk has room"):  # fmt: skip
        assert words in shown, words


def test_spend_is_of_today_and_the_month_and_never_exact_when_a_part_is_unknown(client):
    make_assistant("daily", config=Config(daily_budget_usd=5.0))
    make_run(state="ended", spent_usd=1.25)
    assert "$1.25" in home(client)
    assert "≥" not in home(client)
    make_run(state="ended", spent_usd=0.5, spent_is_lower_bound=True)
    shown = home(client)
    assert "$1.75" in shown
    assert "≥" in shown
    assert "$5.00" in shown


def test_a_viewer_is_offered_nothing_to_press(client):
    fill(1)
    client.force_login(somebody("vera", "viewer"))
    shown = home(client)
    assert "Letter 0" in shown
    assert 'class="sk-btn sk-small">Stop' not in shown
