"""Where somebody is signed in, and signing out there from here."""

from __future__ import annotations

import pytest
from django.test import Client

from runs.models import AuditEvent
from sanduk_site.models import LoginSession
from tests.site.pages import somebody

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse 7 battery"


def person(name: str, *roles: str):
    return somebody(name, *roles, password=PASSWORD)


def browser(name: str, agent: str = "Firefox") -> Client:
    client = Client(headers={"user-agent": agent})
    answer = client.post("/admin/login/", {"username": name, "password": PASSWORD})
    assert answer.status_code == 302
    return client


def is_in(client: Client) -> bool:
    return client.get("/sessions").status_code == 200


def test_each_browser_is_listed_with_what_it_says_of_itself_as_text():
    person("anna", "viewer")
    browser("anna", "<script>alert(1)</script>")
    here = browser("anna")

    page = here.get("/sessions").content.decode()

    assert "&lt;script&gt;" in page
    assert "<script>alert" not in page
    assert "this one" in page


def test_a_browser_that_is_signed_out_from_afar_is_out_at_its_next_request():
    anna = person("anna", "viewer")
    lost, here = browser("anna", "lost phone"), browser("anna")
    row = LoginSession.objects.get(browser="lost phone")

    answer = here.post(f"/sessions/{row.pk}/end")

    assert answer.status_code == 302
    assert not is_in(lost)
    assert is_in(here)
    (event,) = AuditEvent.objects.filter(action="session.end")
    assert event.actor == anna


def test_changing_the_password_keeps_this_browser_and_its_row():
    person("anna", "viewer")
    other, here = browser("anna"), browser("anna")
    new = "another horse 8 battery"
    given = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}

    assert here.post("/admin/password_change/", given).status_code == 302

    assert is_in(here)
    assert not is_in(other)
    row = LoginSession.objects.order_by("pk").last()
    assert row is not None
    assert b"this one" in here.get("/sessions").content


def test_nobody_sees_or_ends_the_sessions_of_others_but_an_administrator():
    person("anna", "viewer"), person("eve", "operator"), person("root", "administrator")
    anna = browser("anna", "of anna")
    row = LoginSession.objects.get()

    eve = browser("eve")
    assert b"of anna" not in eve.get("/sessions").content
    assert eve.post(f"/sessions/{row.pk}/end").status_code == 404
    assert is_in(anna)

    root = browser("root")
    assert b"of anna" in root.get("/sessions").content
    assert root.post(f"/sessions/{row.pk}/end").status_code == 302
    assert not is_in(anna)


def test_signing_out_ends_the_row_and_looking_ends_none():
    person("anna", "viewer")
    here = browser("anna")
    row = LoginSession.objects.get()
    here.get(f"/sessions/{row.pk}/end")
    row.refresh_from_db()
    assert row.ended_at is None

    here.post("/admin/logout/")

    row.refresh_from_db()
    assert (row.ended_by, row.ended_at is None) == ("anna", False)


def test_all_others_of_this_person_are_signed_out_at_once_and_nobody_elses():
    root, eve = person("root", "administrator"), person("eve", "viewer")
    others, here = [browser("root", f"of root {n}") for n in range(3)], browser("root", "here")
    hers = browser("eve")
    assert b"everywhere else" in here.get("/sessions").content
    assert here.get("/sessions/end-others").status_code == 405

    answer = here.post("/sessions/end-others", follow=True)

    assert b"Signed out in 3 other browsers." in answer.content
    assert b"everywhere else" not in answer.content
    assert is_in(here)
    assert is_in(hers)
    assert not any(is_in(each) for each in others)
    assert LoginSession.objects.filter(user=root, ended_by="root").count() == 3
    assert not LoginSession.objects.filter(user=eve, ended_at__isnull=False).exists()
    (event,) = AuditEvent.objects.filter(action="session.end")
    assert (event.actor, event.detail["others"]) == (root, 3)


def test_where_there_are_no_others_nothing_is_ended_and_nothing_recorded():
    person("anna", "viewer"), person("root", "administrator")
    anna = browser("anna")
    root = browser("root")  # which sees anna's, and may end it

    assert b"everywhere else" not in root.get("/sessions").content
    assert b"nowhere else" in root.post("/sessions/end-others", follow=True).content
    assert is_in(anna)
    assert is_in(root)
    assert not AuditEvent.objects.filter(action="session.end").exists()
