"""Guessing a password ends at the fifth wrong one, for a while and for the guesser alone."""

from __future__ import annotations

import datetime as dt

import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna():
    return get_user_model().objects.create_superuser("anna", "", "the right one")


def guess(client, password: str, address: str = "192.0.2.7", name: str = "anna"):
    where = reverse("admin:login")
    return client.post(where, {"username": name, "password": password}, REMOTE_ADDR=address)


def five_wrong_guesses(client) -> None:
    for number in range(5):
        guess(client, f"wrong {number}")


def test_the_sixth_guess_is_refused_also_with_the_right_password_and_says_until_when(client, anna):
    five_wrong_guesses(client)

    page = guess(client, "the right one")

    assert page.status_code == 429
    assert "_auth_user_id" not in client.session
    assert b"that is in 15 minutes" in page.content
    assert 0 < int(page["Retry-After"]) <= 15 * 60
    assert "<time datetime=" in page.content.decode()


def test_four_wrong_guesses_are_forgiven_by_the_right_password(client, anna):
    for number in range(4):
        assert guess(client, f"wrong {number}").status_code == 200
    assert guess(client, "the right one").status_code == 302
    client.logout()

    assert guess(client, "wrong again").status_code == 200


def test_guesses_from_elsewhere_lock_nobody_else_out(client, anna):
    five_wrong_guesses(client)

    assert guess(client, "the right one", address="192.0.2.8").status_code == 302


def test_after_the_time_that_was_said_the_right_password_is_taken(client, anna, monkeypatch):
    five_wrong_guesses(client)
    later = dt.datetime.now(dt.UTC) + dt.timedelta(minutes=15, seconds=1)
    monkeypatch.setattr("axes.handlers.proxy.now", lambda: later)

    assert guess(client, "the right one").status_code == 302


def test_a_guess_while_locked_out_does_not_make_it_longer(client, anna):
    five_wrong_guesses(client)
    first = int(guess(client, "more").headers["Retry-After"])
    for number in range(3):
        last = int(guess(client, f"more {number}").headers["Retry-After"])

    assert last <= first


def test_no_guessed_password_is_kept(client, anna):
    from axes.models import AccessAttempt

    guess(client, "canary-password")

    (kept,) = AccessAttempt.objects.values()
    assert "canary-password" not in repr(kept)


def test_the_name_on_the_page_is_text(client):
    for _ in range(6):
        page = guess(client, "x", name="<script>alert(1)</script>")

    assert page.status_code == 429
    assert b"<script>alert" not in page.content
