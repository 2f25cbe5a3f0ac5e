"""A session that ended while somebody wrote: what they typed comes back, to them alone."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.urls import reverse

from assistants.models import InboxMessage
from runs import clock
from tests.factories import make_assistant
from tests.site.pages import make_item

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse 7 battery"
TEXT = "mind the <b>gap</b>"
SHOWN = "mind the &lt;b&gt;gap&lt;/b&gt;</textarea>"


@pytest.fixture
def ada():
    return get_user_model().objects.create_superuser("ada", "", PASSWORD)


@pytest.fixture
def bob():
    return get_user_model().objects.create_superuser("bob", "", PASSWORD)


def typed(client, user, page: str, form: str, field: str):
    """Opens a page, loses the session, and sends its form; the fields of what is answered."""
    client.force_login(user)
    shown = client.get(page).content.decode()
    assert f'name="typed_by" value="{user.pk}"' in shown
    client.logout()
    given = {field: TEXT, "typed_by": user.pk}
    answer = client.post(form, given, headers={"referer": f"http://testserver{page}"})
    assert answer.status_code == 403
    assert SHOWN in answer.content.decode()
    hidden = dict(re.findall(r'name="(next|typed_by)" value="([^"]*)"', answer.content.decode()))
    return {**hidden, "typed": TEXT}


def sign_in(client, fields, name: str, password: str = PASSWORD):
    return client.post(reverse("admin:login"), {**fields, "username": name, "password": password})


@pytest.fixture(params=["assistant", "item"])
def form(request):
    assistant = make_assistant("daily")
    if request.param == "assistant":
        return (
            reverse("assistant", args=["daily"]),
            reverse("assistant-tell", args=["daily"]),
            "text",
        )
    item = make_item(assistant, "all is well")
    pages = (reverse(name, args=[item.pk]) for name in ("outbox-item", "outbox-decide"))
    return *pages, "reason"


def test_what_was_typed_comes_back_once_after_signing_in(client, ada, form):
    page = form[0]
    fields = typed(client, ada, *form)
    assert not Session.objects.exists(), "nothing is kept for who is not signed in"

    wrong = sign_in(client, fields, "ada", "wrong")
    assert SHOWN in wrong.content.decode(), "a wrong password loses nothing"
    answer = sign_in(client, fields, "ada")

    assert (answer.status_code, answer.url) == (302, page)
    assert SHOWN in client.get(page).content.decode()
    assert SHOWN not in client.get(page).content.decode()
    assert not InboxMessage.objects.exists()


def test_who_signs_in_there_as_somebody_else_does_not_see_it(client, ada, bob, form):
    fields = typed(client, ada, *form)
    assert sign_in(client, fields, "bob").status_code == 302
    assert SHOWN not in client.get(form[0]).content.decode()


def test_after_some_minutes_it_is_gone(client, ada, form, monkeypatch):
    fields = typed(client, ada, *form)
    sign_in(client, fields, "ada")
    later = clock.now() + dt.timedelta(minutes=11)
    monkeypatch.setattr("runs.clock.now", lambda: later)
    assert SHOWN not in client.get(form[0]).content.decode()


def test_no_address_elsewhere_is_gone_to(client, ada, form):
    fields = {**typed(client, ada, *form), "next": "https://evil.example/"}
    assert sign_in(client, fields, "ada").url == "/"


def test_a_form_in_which_nothing_was_typed_leads_to_the_login(client, form):
    assert client.post(form[1], {"typed_by": "1"}).status_code == 302
