"""The page of a run says how it stands, while it goes on and after."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from django.urls import reverse

from assistants.wakeups import LOST
from runs import clock, telling
from runs.models import RelayCall, Run
from tests.factories import make_assistant, make_run, make_wakeup
from tests.site.pages import somebody

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(client):
    client.force_login(somebody("ada", "administrator"))
    return client


def shown(client, run: Run) -> str:
    return client.get(reverse("run", args=[run.uid])).content.decode()


def test_a_live_run_shows_what_its_calls_came_to_so_far(client):
    run = make_run(state="running", started_at=clock.now(), calls_relayed=1)
    RelayCall.objects.create(
        run=run, sequence=1, method="POST", path="/v1", protocol="openai", started_at=clock.now(),
        input_tokens=1200, output_tokens=34, cost_usd=0.0123, cost_kind="exact",
    )  # fmt: skip
    page = shown(client, run)
    assert "1,234" in page
    assert "$0.0123" in page


def test_a_live_run_says_when_its_certificate_is_written_and_then_shows_it(client):
    run = make_run(state="starting", mode="sealed")
    assert "It is written when the probe has answered" in shown(client, run)
    Run.objects.filter(pk=run.pk).update(
        state="running",
        certificate={"headline": "sealed: no way out",
                     "checks": [{"name": "n", "verdict": "closed", "sentence": "No route."}]},
    )  # fmt: skip
    page = shown(client, run)
    assert "sealed: no way out" in page
    assert "No route." in page


def test_an_ended_run_without_a_certificate_says_that_no_probe_answered(client):
    run = make_run(state="ended", outcome="refused", mode="sealed")
    assert "no probe has answered" in shown(client, run)


def test_asked_comes_before_claimed_also_where_both_are_the_same_moment():
    now = clock.now()
    run = make_run(
        state="running", created_at=now, claimed_at=now - dt.timedelta(milliseconds=3),
        started_at=now + dt.timedelta(seconds=2),
    )  # fmt: skip
    told = telling.timeline(run)
    assert [moment.word for moment in told] == ["asked", "claimed", "agent started"]
    assert all((moment.after_s or 0) >= 0 for moment in told)


def agents_words(page: str) -> list[str]:
    return re.findall(r'<q class="sk-said">(.*?)</q>', page)


def test_why_a_run_was_interrupted_is_said_once_and_not_as_an_agents_words(client):
    run = make_run(state="ended", outcome="interrupted", reason=LOST, ended_at=clock.now())
    page = shown(client, run)
    assert page.count(LOST) == 1
    assert agents_words(page) == []
    home = client.get(reverse("home")).content.decode()
    assert home.count(LOST) == 1
    assert agents_words(home) == []


def test_what_the_agent_said_of_its_failure_is_an_agents_words(client):
    reason = "the agent exited with 2 and no terminal record; its last words: segfault"
    page = shown(client, make_run(state="ended", outcome="failed", reason=reason))
    assert agents_words(page) == ["segfault"]
    assert "no terminal record; its last words: <q" in page


def test_what_the_relay_says_of_a_refused_call_is_not_an_agents_words(client):
    run = make_run(state="ended")
    RelayCall.objects.create(
        run=run, sequence=1, method="POST", path="/v1", protocol="openai", started_at=clock.now(),
        status=402, refusal="budget",
    )  # fmt: skip
    page = shown(client, run)
    assert "budget" in page
    assert agents_words(page) == []


def test_of_a_wakeup_and_a_disabling_only_the_agents_part_is_an_agents_words(client):
    run = make_run(state="ended", outcome="needs_input", reason="which one?")
    assistant = make_assistant(
        "scout", disabled_at=clock.now(),
        disabled_reason="3 failures in a row; the last: needs input: which one?",
    )  # fmt: skip
    make_wakeup(
        assistant, state="ended", outcome="failed", run=run, reason="needs input: which one?"
    )
    gate = "the gate said no (exit 1): nothing is new"
    make_wakeup(assistant, state="ended", outcome="gate", reason=gate)
    make_wakeup(assistant, state="ended", outcome="interrupted", reason=LOST)
    page = client.get(reverse("assistant", args=["scout"])).content.decode()
    assert sorted(agents_words(page)) == ["nothing is new", "which one?", "which one?"]
    assert "the last: needs input: <q" in page
    assert agents_words(client.get(reverse("home")).content.decode()) == ["which one?"]


def test_of_an_unknown_last_failure_all_is_taken_for_an_agents_words(client):
    make_assistant("scout", disabled_at=clock.now(), disabled_reason="it failed; the last: timed")
    page = client.get(reverse("assistant", args=["scout"])).content.decode()
    assert agents_words(page) == ["timed"]
