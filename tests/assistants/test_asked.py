"""A wakeup's run says who asked for it, whoever's process lives it."""

from __future__ import annotations

import datetime as dt

import pytest
from django.contrib.auth import get_user_model

from assistants import ticking, wakeups
from assistants.models import Wakeup
from runs import clock
from sanduk_site import spending
from tests.assistants.waking import assistant_in, memory, runs, woken
from tests.factories import make_schedule
from tests.runs.conftest import state

__all__ = ["memory", "runs", "state"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memory")]


@pytest.fixture
def ada():
    return get_user_model().objects.create_superuser("ada")


def asked_by(wakeup: Wakeup) -> tuple[str, str, str]:
    wakeup.refresh_from_db()
    user = wakeup.run.requested_by
    return wakeup.run.trigger, user.get_username() if user else "", wakeup.run.requested_as


def test_who_wakes_it_on_the_web_is_whom_its_run_and_the_spend_name(tmp_path, runs, ada):
    wakeup = ticking.wake_by_hand(assistant_in(tmp_path), asked_by="ada", actor=ada)

    wakeups.wake(wakeup.pk)

    assert asked_by(wakeup) == ("web", "ada", "")
    since = clock.now().date() - dt.timedelta(days=1)
    assert [line.name for line in spending.lines("person", since, ada)] == ["ada"]


def test_who_wakes_it_at_a_terminal_is_named_by_their_account(tmp_path, runs):
    wakeup = ticking.wake_by_hand(assistant_in(tmp_path), asked_by="cl")

    wakeups.wake(wakeup.pk)

    assert asked_by(wakeup) == ("terminal", "", "cl")


def test_a_schedule_is_nobodys_asking(tmp_path, runs):
    one = assistant_in(tmp_path)

    wakeup = woken(one, trigger="schedule", schedule=make_schedule(one))

    assert asked_by(wakeup) == ("schedule", "", "")


def test_what_is_tried_again_was_asked_for_by_who_asked_first(tmp_path, runs, ada):
    wakeup = ticking.wake_by_hand(assistant_in(tmp_path), asked_by="ada", actor=ada)
    runs.ends = {"outcome": "interrupted"}
    wakeups.wake(wakeup.pk)

    again = Wakeup.objects.get(state="waiting")
    wakeups.wake(again.pk)

    assert asked_by(again) == ("web", "ada", "")
