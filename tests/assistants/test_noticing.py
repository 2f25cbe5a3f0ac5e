"""E-mails to people: who is told of what, once, and nothing that an agent wrote."""

from __future__ import annotations

import datetime as dt
import smtplib

import pytest
from django.core import mail
from django.urls import reverse

from assistants import belonging, noticing
from assistants.models import Delivery, Destination, Notice
from runs import clock
from runs.models import AuditEvent
from sanduk_site import env
from tests.assistants.sending.test_mail import server as smtp
from tests.factories import make_assistant
from tests.site.pages import EVIL, make_item, somebody

__all__ = ["smtp"]
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def server(settings):
    settings.SANDUK_SENDS_MAIL = True
    settings.SANDUK_BASE_URL = "https://sanduk.example"
    settings.DEFAULT_FROM_EMAIL = "sanduk@sanduk.example"


@pytest.fixture
def now(monkeypatch):
    """Moves the clock: now(minutes=6) is six minutes on."""
    at = [clock.now()]
    monkeypatch.setattr(clock, "now", lambda: at[0])

    def forward(**by: float) -> None:
        at[0] += dt.timedelta(**by)

    return forward


def new_item(assistant, body: str, **fields):
    return make_item(assistant, body, created_at=clock.now(), **fields)


def telling(name: str, *roles: str, items: bool = True, troubles: bool = False):
    person = somebody(name, *roles, email=f"{name}@example.org")
    noticing.choose(person, of_items=items, of_troubles=troubles)
    return person


def test_new_items_are_told_of_once_and_together(now):
    telling("ada", "approver")
    daily = make_assistant("daily")
    new_item(daily, "before")
    now(minutes=1)
    for _ in range(2):
        new_item(daily, "said")
    assert noticing.send_due() == 0  # not yet: what comes meanwhile is told of together
    now(minutes=6)
    assert noticing.send_due() == 1
    (letter,) = mail.outbox
    assert letter.to == ["ada@example.org"]
    assert letter.subject == "sanduk: 2 items wait for a decision"
    assert letter.body == (
        "2 items wait for a decision: https://sanduk.example/outbox/\n  daily: 2\n"
    )
    now(minutes=6)
    assert noticing.send_due() == 0


def test_nothing_that_an_agent_wrote_is_in_it(now):
    telling("ada", "approver", troubles=True)
    now(minutes=1)
    new_item(make_assistant("daily"), EVIL)
    make_assistant("off", disabled_at=clock.now(), disabled_reason=EVIL)
    now(minutes=6)
    noticing.send_due()
    (letter,) = mail.outbox
    assert "script" not in f"{letter.subject}{letter.body}"
    assert "1 thing needs a look: https://sanduk.example/\n  off: 1" in letter.body


def test_only_those_are_told_who_want_it_and_may_decide(now):
    telling("ada", "approver")
    telling("vera", "viewer")
    telling("olga", "approver", items=False)
    away = telling("away", "approver")
    away.is_active = False
    away.save()
    nowhere = telling("nowhere", "approver")
    nowhere.email = ""
    nowhere.save()
    now(minutes=1)
    new_item(make_assistant("daily"), "said")
    now(minutes=6)
    noticing.send_due()
    assert [letter.to for letter in mail.outbox] == [["ada@example.org"]]


def test_of_what_is_somebody_elses_nobody_is_told(now):
    telling("ada", "approver", troubles=True)
    anna = telling("anna", "approver", troubles=True)
    now(minutes=1)
    own = make_assistant("own", disabled_at=clock.now())
    belonging.give_to(own, anna)
    item = new_item(own, "said", state="approved", decided_at=clock.now())
    new_item(own, "more")
    place = Destination.objects.create(name="mail", kind="file", config={"path": "/srv/out"})
    Delivery.objects.create(item=item, destination=place, state="unknown", ended_at=clock.now())
    now(minutes=6)
    noticing.send_due()
    (letter,) = mail.outbox
    assert letter.to == ["anna@example.org"]
    assert "1 item waits" in letter.body
    assert "2 things need a look" in letter.body


def test_what_was_decided_or_has_expired_meanwhile_is_not_told_of(now):
    telling("ada", "approver")
    daily = make_assistant("daily")
    now(minutes=1)
    new_item(daily, "said", state="rejected", decided_at=clock.now())
    new_item(daily, "said", expires_at=clock.now() + dt.timedelta(minutes=2))
    now(minutes=6)
    assert noticing.send_due() == 0


def test_two_workers_send_it_once(now):
    telling("ada", "approver")
    seen = Notice.objects.get()
    now(minutes=6)
    assert Notice.objects.claim(seen, looked_at=clock.now())
    assert not Notice.objects.claim(seen, looked_at=clock.now())


def test_a_server_that_refuses_is_written_down_without_its_words(now, monkeypatch):
    telling("ada", "approver")
    telling("ben", "approver")
    now(minutes=1)
    new_item(make_assistant("daily"), "said")
    now(minutes=6)
    tries = []

    def send(*given, **more):
        tries.append(given)
        if len(tries) == 1:
            raise smtplib.SMTPAuthenticationError(535, b"the password was hunter2")

    monkeypatch.setattr(noticing, "send_mail", send)
    assert noticing.send_due() == 1
    event = AuditEvent.objects.get(action="notice.failed")
    assert "hunter2" not in str(event.detail)
    assert AuditEvent.objects.filter(action="notice.send").count() == 1


def test_without_a_server_nobody_is_told_and_the_page_says_so(client, now, settings):
    settings.SANDUK_SENDS_MAIL = False
    ada = telling("ada", "approver")
    now(minutes=1)
    new_item(make_assistant("daily"), "said")
    now(minutes=6)
    assert noticing.send_due() == 0
    client.force_login(ada)
    assert "SANDUK_EMAIL_URL" in client.get(reverse("notices")).content.decode()


def test_each_person_chooses_for_themselves(client):
    ada, ben = somebody("ada", "approver"), somebody("ben", "approver")
    client.force_login(ada)
    place = reverse("notices")
    answer = client.post(place, {"email": "no address", "of_items": "on"})
    assert 'role="alert"' in answer.content.decode()
    assert not Notice.objects.exists()
    client.post(place, {"email": "ada@example.org", "of_items": "on", "user": ben.pk})
    found = Notice.objects.get()
    assert (found.user, found.of_items, found.of_troubles) == (ada, True, False)
    ada.refresh_from_db()
    ben.refresh_from_db()
    assert (ada.email, ben.email) == ("ada@example.org", "")
    assert "ada@example.org" in client.get(place).content.decode()


def test_a_mail_server_gets_it_as_the_setting_says(now, settings, monkeypatch, smtp):
    monkeypatch.setenv("SANDUK_EMAIL_URL", f"smtp://127.0.0.1:{smtp.server_address[1]}")
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    for name, value in env.mail_server("SANDUK_EMAIL_URL").items():
        setattr(settings, name, value)
    telling("ada", "approver")
    now(minutes=1)
    new_item(make_assistant("daily"), "said")
    now(minutes=6)
    assert noticing.send_due() == 1
    (letter,) = smtp.got
    assert "To: ada@example.org" in letter
    assert "Subject: sanduk: 1 item waits for a decision" in letter
    now(minutes=1)
    new_item(make_assistant("other"), "said")
    now(minutes=6)
    smtp.answers["MAIL"] = "550 no"
    assert noticing.send_due() == 0
    assert AuditEvent.objects.filter(action="notice.failed").count() == 1
