"""The admin shows evidence and lets nobody touch it."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse

from sanduk_site import links
from sanduk_site.sessions import FRESH_KEY
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
    assert client.get(reverse("admin:login"), somewhere).url == somewhere["next"]


@pytest.mark.parametrize(
    "elsewhere",
    ["https://evil.example/", "//evil.example/", "javascript:alert(1)", "\\\\evil.example", "",
     "http:///evil.example", "/admin/login/?next=/admin/login/"],
)  # fmt: skip
def test_who_is_signed_in_is_led_to_no_page_elsewhere(client, elsewhere):
    client.force_login(somebody("ada", "administrator"))
    assert client.get(reverse("admin:login"), {"next": elsewhere}).url == reverse("home")


def test_what_does_not_let_in_is_told_in_words_of_this_site(client):
    somebody("ada", "administrator", password="correct horse 4711")
    given = {"username": "ada", "password": "wrong"}
    page = client.post(reverse("admin:login"), given).content.decode()
    assert "The name or the password is not right." in page
    assert "staff account" not in page


def test_the_ways_to_the_lists_of_the_admin_say_nothing_twice(client):
    client.force_login(somebody("ada", "administrator"))
    found = {}
    for name in ("runs_run", "runs_auditevent", "auth_user"):
        page = client.get(reverse(f"admin:{name}_changelist")).content.decode()
        crumbs = re.search(r'<div class="breadcrumbs">(.*?)</div>', page, re.DOTALL)
        assert crumbs is not None
        found[name] = re.sub(r"<.*?>|\s+", " ", crumbs[1]).replace("&rsaquo;", ">").split()
    assert found["runs_run"] == ["Home", ">", "Runs"]
    assert found["runs_auditevent"] == ["Home", ">", "Admin", ">", "Audit", "events"]
    assert found["auth_user"] == ["Home", ">", "Users"]
    index = client.get(reverse("admin:index")).content.decode()
    assert ">Records</a>" in index.replace("\n", "").replace("  ", "")


def test_people_are_in_the_navigation_for_who_may_see_them(client):
    way = f'href="{reverse("admin:auth_user_changelist")}"'
    client.force_login(somebody("ada", "administrator"))
    assert way in client.get(reverse("home")).content.decode()
    page = client.get(reverse("admin:auth_user_changelist")).content.decode()
    assert f'{way} aria-current="page">People' in page
    client.force_login(somebody("olga", "operator"))
    assert way not in client.get(reverse("home")).content.decode()


@pytest.mark.parametrize("path", ["/admin/password_change/", "/admin/auth/user/add/"])
def test_a_form_that_takes_a_password_says_whose_to_who_keeps_passwords(client, path):
    client.force_login(somebody("ada", "administrator"))
    session = client.session
    session[FRESH_KEY] = 0.0
    session.save()
    page = client.get(path).content.decode()
    assert '<input type="text" value="ada" autocomplete="username" hidden readonly>' in page
    token = links.new(get_user_model().objects.get(username="ada"))
    page = client.get(reverse("setup", args=[token])).content.decode()
    assert '<input type="text" value="ada" autocomplete="username" hidden readonly>' in page


def test_the_system_page_says_in_words_what_the_worker_was_asked(client):
    client.force_login(somebody("ada", "administrator"))
    page = client.get(reverse("system")).content.decode()
    assert "Bells" not in page
    assert "Runs asked of the worker" in page
