"""The page of a run says how it stands, while it goes on and after."""

from __future__ import annotations

import datetime as dt

import pytest
from django.urls import reverse

from runs import clock, telling
from runs.models import RelayCall, Run
from tests.factories import make_run
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
