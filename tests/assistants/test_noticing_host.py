"""E-mails about the host: interrupted runs, a disk that fills up, a worker that is away."""

from __future__ import annotations

import datetime as dt

import pytest
from django.core import mail

from assistants import belonging, noticing
from runs import clock, host_states, pulse
from sanduk_site import web
from tests.assistants.test_noticing import now, server, telling
from tests.factories import make_assistant, make_run, make_wakeup
from tests.site.pages import EVIL, somebody

__all__ = ["now", "server"]
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def home(tmp_path, settings):
    settings.SANDUK_HOME = tmp_path
    settings.SANDUK_MIN_FREE_MB = 100


@pytest.fixture
def free(monkeypatch):
    """free(900): so many MB are free from now on."""
    left = [1_000_000]
    monkeypatch.setattr(host_states, "free_mb", lambda: left[0])

    def is_now(megabytes: int) -> None:
        left[0] = megabytes

    return is_now


@pytest.fixture(autouse=True)
def room(free):
    """There is room, where a test does not say otherwise."""


def letters() -> list[str]:
    """The subjects of what was sent since the last time."""
    said = [each.subject for each in mail.outbox]
    mail.outbox.clear()
    return said


def look(now, **by: float) -> list[str]:
    """Two looks, as the worker has them; what somebody was told."""
    now(**by)
    noticing.send_due()
    now(minutes=1)
    noticing.send_due()
    return letters()


def test_interrupted_runs_are_told_of_together_and_once(now):
    telling("ada", "viewer", items=False, troubles=True)
    now(minutes=1)
    daily = make_assistant("daily")
    for _ in range(2):
        run = make_run(state="ended", outcome="interrupted", reason=EVIL, ended_at=clock.now())
        make_wakeup(daily, state="ended", run=run)
    make_run(state="ended", outcome="interrupted", ended_at=clock.now())
    make_run(state="ended", outcome="failed", ended_at=clock.now())
    now(minutes=6)
    assert noticing.send_due() == 1
    (letter,) = mail.outbox
    assert letter.subject == "sanduk: 3 runs were interrupted"
    assert letter.body.splitlines() == [
        "3 runs were interrupted: https://sanduk.example/",
        "  daily: 2",
        "  of no assistant: 1",
    ]
    letters()
    assert look(now, minutes=6) == []


def test_nobody_is_told_of_the_runs_of_what_is_somebody_elses(now):
    telling("ada", "viewer", items=False, troubles=True)
    own = make_assistant("own")
    belonging.give_to(own, somebody("anna"))
    now(minutes=1)
    run = make_run(state="ended", outcome="interrupted", ended_at=clock.now())
    make_wakeup(own, state="ended", run=run)
    assert look(now, minutes=6) == []


def test_a_disk_is_told_of_when_it_fills_up_and_again_only_after_there_was_room(now, free):
    telling("ada", "viewer", items=False, troubles=True)
    told = ["sanduk: little room is left on the disk"]
    assert look(now, minutes=6) == []
    free(999)
    now(minutes=6)
    noticing.send_due()
    now(minutes=1)
    noticing.send_due()
    (letter,) = mail.outbox
    assert letter.body.splitlines() == [
        "little room is left on the disk: https://sanduk.example/system/",
        "  999 MB are free; runs are refused below 100 MB",
    ]
    assert letters() == told
    for megabytes in (1010, 990, 1400, 50):  # around the edge, and worse
        free(megabytes)
        assert look(now, minutes=6) == []
    free(1500)
    assert look(now, minutes=6) == []
    free(900)
    assert look(now, minutes=6) == told


def test_a_worker_is_told_of_as_away_once_until_it_is_back(now):
    telling("ada", "viewer", items=False, troubles=True)
    assert look(now, minutes=6) == []  # there never was one
    for _ in range(2):
        pulse.stamp("worker")
        assert look(now, minutes=1) == []
        now(minutes=6)
        assert web.send_for_the_worker() == 0  # it is noticed, and perhaps it is back in a moment
        now(minutes=1)
        assert web.send_for_the_worker() == 1
        assert letters() == ["sanduk: the worker is away"]
        now(hours=9)
        assert web.send_for_the_worker() == 0
        pulse.stamp("worker")
        noticing.send_due()


def test_a_worker_that_is_back_in_a_moment_is_not_told_of(now):
    telling("ada", "viewer", items=False, troubles=True)
    pulse.stamp("worker")
    now(minutes=6)
    web.send_for_the_worker()
    pulse.stamp("worker")
    assert look(now, seconds=50) == []


def test_while_the_worker_is_at_work_the_site_sends_nothing(now, free):
    telling("ada", "viewer", items=False, troubles=True)
    free(10)
    now(minutes=6)
    for _ in range(3):
        pulse.stamp("worker")
        assert web.send_for_the_worker() == 0
        now(minutes=1)


@pytest.mark.parametrize(("roles", "troubles"), [((), True), (("viewer",), False)])
def test_only_those_are_told_who_want_it_and_may_look(now, free, roles, troubles):
    telling("ada", *roles, items=True, troubles=troubles)
    pulse.stamp("worker")
    free(10)
    make_run(state="ended", outcome="interrupted", ended_at=clock.now() + dt.timedelta(minutes=1))
    assert look(now, minutes=8) == []


def test_what_cannot_be_remembered_is_no_news_at_every_look(now, free, settings, tmp_path):
    telling("ada", "viewer", items=False, troubles=True)
    (tmp_path / "pulse").write_text("no directory")
    free(10)
    assert look(now, minutes=6) == look(now, minutes=6) == []
