"""A dangerous setting asks for the password once more when the last time is long ago."""

from __future__ import annotations

import datetime as dt

import pytest
from django.contrib.auth import get_user_model

from runs import clock, four_eyes

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse 7 battery"
PAGE = "/first-run/team"


@pytest.fixture
def root(client, settings):
    settings.SANDUK_FOUR_EYES = None
    user = get_user_model().objects.create_superuser("root", "", PASSWORD)
    client.post("/admin/login/", {"username": "root", "password": PASSWORD})
    return user


@pytest.fixture
def later(monkeypatch):
    at = clock.now() + dt.timedelta(minutes=10, seconds=1)
    monkeypatch.setattr("runs.clock.now", lambda: at)


def test_who_has_just_signed_in_is_not_asked(client, root):
    assert client.post(PAGE, {"team": "team"}).status_code == 302
    assert four_eyes.is_on() is True


def test_after_ten_minutes_the_password_is_asked_and_nothing_changes_before(client, root, later):
    page = client.post(PAGE, {"team": "team"})

    assert page.status_code == 403
    assert b"Your password, please" in page.content
    assert four_eyes.is_on() is False


def test_what_was_typed_goes_on_with_the_password(client, root, later):
    page = client.post(PAGE, {"team": "team"})
    assert b'name="team" value="team"' in page.content

    answer = client.post(PAGE, {"team": "team", "sudo_go_on": "post", "sudo_password": PASSWORD})

    assert answer.status_code == 302
    assert four_eyes.is_on() is True
    assert client.get(PAGE).status_code == 200


def test_a_wrong_password_is_refused_and_what_was_typed_stays(client, root, later):
    given = {"team": "team", "sudo_go_on": "post", "sudo_password": "wrong"}

    page = client.post(PAGE, given)

    assert page.status_code == 403
    assert b"not your password" in page.content
    assert b'name="team" value="team"' in page.content
    assert b"wrong" not in page.content
    assert four_eyes.is_on() is False


def test_a_page_that_was_only_opened_is_shown_after_the_password(client, root, later):
    page = client.get(PAGE)
    assert page.status_code == 403
    assert b'name="sudo_go_on" value="get"' in page.content

    answer = client.post(PAGE, {"sudo_go_on": "get", "sudo_password": PASSWORD})

    assert (answer.status_code, answer.url) == (302, PAGE)
    assert four_eyes.chosen() is None, "the form that asks is not the form of the page"
    assert client.get(PAGE).status_code == 200


def test_guessing_there_is_throttled_as_at_the_login(client, root, later):
    for number in range(5):
        client.post(PAGE, {"sudo_go_on": "get", "sudo_password": f"wrong {number}"})

    answer = client.post(PAGE, {"sudo_go_on": "get", "sudo_password": PASSWORD})

    assert answer.status_code == 429
    assert client.get(PAGE).status_code == 403


def test_a_key_that_was_typed_is_not_sent_back_in_the_page(client, root, later):
    page = client.post("/first-run/provider", {"provider": "openai", "key": "canary"})

    assert page.status_code == 403
    assert b"canary" not in page.content
