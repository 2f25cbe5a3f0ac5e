"""The admin shows evidence and lets nobody touch it."""

from __future__ import annotations

import datetime as dt

import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse

from tests.factories import make_run
from tests.site.pages import somebody

pytestmark = pytest.mark.django_db


@pytest.fixture
def root_client(client):
    user = get_user_model().objects.create_superuser("root", "root@example.com", "pass")
    client.force_login(user)
    return client


@pytest.mark.parametrize("model", ["run", "runevent", "relaycall", "decision", "auditevent"])
def test_every_list_of_evidence_opens_and_offers_nothing_to_add(root_client, model):
    page = root_client.get(reverse(f"admin:runs_{model}_changelist"))
    assert page.status_code == 200
    assert root_client.get(reverse(f"admin:runs_{model}_add")).status_code == 403


def test_a_run_can_be_read_and_neither_changed_nor_deleted_by_a_superuser(root_client):
    run = make_run(task="<script>alert(1)</script>")
    page = root_client.get(reverse("admin:runs_run_change", args=[run.pk]))
    assert b"&lt;script&gt;" in page.content
    assert b"<script>alert" not in page.content
    assert root_client.post(page.wsgi_request.path, {"task": "x"}).status_code == 403
    assert root_client.post(reverse("admin:runs_run_delete", args=[run.pk])).status_code == 403


def test_a_list_is_named_by_what_it_holds_and_its_moments_have_a_zone(client):
    make_run(state="ended", created_at=dt.datetime(2026, 3, 4, 5, 6, 7, tzinfo=dt.UTC))
    client.force_login(somebody("ada", "administrator"))
    page = client.get(reverse("admin:runs_run_changelist")).content.decode()
    assert "<h1>Runs</h1>" in page
    assert "Select run" not in page
    assert "2026-03-04 05:06:07 UTC" in page
    assert 'id="nav-sidebar"' not in page


def test_signing_in_without_a_way_back_leads_home(client):
    somebody("ada", "administrator", password="correct horse 4711")
    page = client.get(reverse("admin:login")).content.decode()
    assert f'name="next" value="{reverse("home")}"' in page
    given = {"username": "ada", "password": "correct horse 4711", "next": reverse("home")}
    assert client.post(reverse("admin:login"), given).url == reverse("home")
    assert client.get(reverse("admin:login")).url == reverse("home")
    somewhere = {"next": reverse("admin:runs_run_changelist")}
    assert client.get(reverse("admin:login"), somewhere).url != reverse("home")
