"""Pages that say no: in words, with a way back, and with no script or style of their own."""

from __future__ import annotations

import contextlib

import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse

from assistants.models import InboxMessage
from tests.factories import make_assistant, make_run
from tests.site.pages import somebody

pytestmark = pytest.mark.django_db


def check(shown: str, words: str) -> None:
    assert words in shown
    assert f'href="{reverse("home")}"' in shown
    for bad in ("<style", " style=", "<script"):
        assert bad not in shown


def test_an_address_that_leads_nowhere(client):
    client.force_login(somebody("ada", "administrator"))
    for address in ("/nothing", "/runs/<script>/", reverse("run", args=["none"])):
        answer = client.get(address)
        assert answer.status_code == 404
        check(answer.content.decode(), "There is no such page")


def test_a_right_that_is_missing(client):
    client.force_login(somebody("vera", "viewer"))
    answer = client.post(reverse("run-stop", args=[make_run().uid]))
    assert answer.status_code == 403
    check(answer.content.decode(), "You may not do this")


def test_a_form_of_an_old_tab():
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(somebody("ada", "administrator"))
    answer = strict.post(reverse("run-stop", args=[make_run().uid]), {"csrfmiddlewaretoken": "old"})
    assert answer.status_code == 403
    check(answer.content.decode(), "what you typed is still there")


def test_an_error_of_ours():
    check(render_to_string("500.html"), "sanduk itself failed")


def test_a_form_that_is_too_large_is_refused_in_the_frame_with_how_much_fits(client, settings):
    make_assistant("daily")
    client.force_login(somebody("ada", "administrator"))

    answer = client.post(reverse("assistant-tell", args=["daily"]), {"text": "x" * 3_000_000})

    assert answer.status_code == 413
    shown = answer.content.decode()
    assert "at most 2,621,440 bytes" in shown
    assert "Log out" in shown
    assert not InboxMessage.objects.exists()


@pytest.mark.parametrize("address", ["/static/sanduk/sanduk.css", "/admin/login/", "/healthz"])
def test_a_name_that_was_not_given_gets_nothing_not_even_a_static_file(client, address):
    assert client.get(address, headers={"host": "evil.example"}).status_code == 400
    with contextlib.closing(client.get(address)) as answer:
        assert answer.status_code == 200


@pytest.mark.parametrize(
    ("host", "address", "status"),
    [
        ("box.example", "/admin/login/", 200),
        ("box.example:8443", "/static/sanduk/sanduk.css", 200),
        ("localhost", "/admin/login/", 400),
        ("localhost", "/static/sanduk/sanduk.css", 400),
        ("localhost", "/healthz", 200),
    ],
)
def test_with_https_pages_are_served_under_its_name_alone_and_stay_on_https(
    client, settings, host, address, status
):
    settings.ALLOWED_HOSTS = ["localhost", "box.example"]
    settings.SANDUK_HTTPS_HOSTS = ["box.example"]

    with contextlib.closing(client.get(address, headers={"host": host})) as answer:
        assert answer.status_code == status
        if status == 200:
            assert answer["Strict-Transport-Security"] == "max-age=31536000"


def test_without_https_nothing_is_said_of_it(client):
    assert "Strict-Transport-Security" not in client.get("/admin/login/")
