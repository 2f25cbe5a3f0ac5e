"""The audit says who signed in, failed to and was locked out, and nothing that was typed."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse

from runs.models import AuditEvent
from sanduk_site import login_audit
from tests.site.test_throttle import five_wrong_guesses, guess

pytestmark = pytest.mark.django_db
HERE = "192.0.2.7"


@pytest.fixture(autouse=True)
def anna():
    return get_user_model().objects.create_superuser("anna", "", "the right one")


def events(*actions: str) -> list[tuple]:
    found = AuditEvent.objects.filter(action__in=actions).order_by("number")
    return [(each.action, each.subject, each.detail.get("how"), each.detail.get("address"))
            for each in found]  # fmt: skip


def test_signing_in_and_out_is_written_down_with_how(client, anna):
    guess(client, "the right one")
    client.post(reverse("admin:logout"))
    assert events("login", "logout") == [
        ("login", "user:anna", "password", HERE), ("logout", "user:anna", None, None),
    ]  # fmt: skip
    assert set(AuditEvent.objects.values_list("actor", flat=True)) == {anna.pk}


def test_failures_are_written_down_and_a_lock_once_however_long_one_goes_on(client):
    five_wrong_guesses(client)
    for number in range(7):
        assert guess(client, f"more {number}").status_code == 429
    assert events("login.failed") == [("login.failed", "user:anna", "password", HERE)] * 5
    assert events("login.locked") == [("login.locked", "user:anna", "password", HERE)]
    guess(client, "the right one", address="192.0.2.8")
    assert len(events("login")) == 1


def test_no_password_and_no_name_of_nobody_is_written_down(client):
    for name in ("hunter2-in-the-wrong-field", "anna\0"):
        guess(client, "hunter3", name=name)
    guess(client, "hunter3")
    told = json.dumps(list(AuditEvent.objects.values("subject", "detail", "account")))
    assert "hunter" not in told
    assert (login_audit.FAILED, login_audit.NOBODY, "password", HERE) in events("login.failed")


def test_guessers_from_everywhere_do_not_fill_the_audit(client, monkeypatch):
    monkeypatch.setattr(login_audit, "HOURLY_MAX", 8)
    for number in range(12):
        guess(client, "wrong", address=f"192.0.2.{number}", name=f"nobody-{number}")
    assert len(events("login.failed", "login.locked")) == 8
