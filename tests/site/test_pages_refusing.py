"""Pages that say no: in words, with a way back, and with no script or style of their own."""

from __future__ import annotations

import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse

from tests.factories import make_run
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
