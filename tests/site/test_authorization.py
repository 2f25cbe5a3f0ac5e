"""Who may open what: every address of the site is in a table, or this fails.

The pages of runs and assistants have a table of their own in test_pages_rights.py, those of changes
in tests/changes/test_pages_rights.py.
"""

from __future__ import annotations

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver

from sanduk_site import links, roles
from sanduk_site.models import LoginSession
from tests.changes.test_pages_rights import OURS as CHANGES_TABLE
from tests.site.pages import somebody
from tests.site.test_pages_rights import OURS as OTHER_TABLE

pytestmark = pytest.mark.django_db

ROLES = ("viewer", "operator", "approver", "administrator")
NOBODY, STRANGER, SUPERUSER = "nobody", "stranger", "superuser"
WHO = (STRANGER, NOBODY, *ROLES, SUPERUSER)
EVERYBODY = frozenset(WHO)
SIGNED_IN = EVERYBODY - {STRANGER}
ADMINISTRATORS = frozenset({"administrator", SUPERUSER})
# by name: its address, the methods it answers, and who may; a stranger is sent to log in
PAGES: dict[str, tuple[str, set[str], frozenset[str]]] = {
    "healthz": ("/healthz", {"GET", "HEAD"}, EVERYBODY),
    "readyz": ("/readyz", {"GET", "HEAD"}, EVERYBODY),
    "setup": ("/setup/{token}", {"GET", "HEAD", "POST"}, EVERYBODY),
    "first-run": ("/first-run", {"GET", "HEAD"}, ADMINISTRATORS),
    "first-run-step": ("/first-run/team", {"GET", "HEAD", "POST"}, ADMINISTRATORS),
    "system-doctor": ("/system/doctor", {"POST"}, frozenset({"operator"}) | ADMINISTRATORS),
    "own-keys": ("/keys", {"GET", "HEAD"}, SIGNED_IN),
    "own-key": ("/keys/keep", {"POST"}, SIGNED_IN),
    "notices": ("/notices", {"GET", "HEAD", "POST"}, SIGNED_IN),
    "sessions": ("/sessions", {"GET", "HEAD"}, SIGNED_IN),
    "terminal-new": ("/sessions/terminals", {"POST"}, SIGNED_IN),
    "terminal-end": ("/sessions/terminals/1/end", {"POST"}, SIGNED_IN),
    "session-end-others": ("/sessions/end-others", {"POST"}, SIGNED_IN),
    "session-end": ("/sessions/{session}/end", {"POST"}, SIGNED_IN),
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
# models that the admin shows, and who sees their lists; nothing of evidence can be changed there
SHOWN = {
    "runs.run": frozenset({*ROLES, SUPERUSER}),
    "runs.runevent": frozenset({*ROLES, SUPERUSER}),
    "runs.relaycall": frozenset({*ROLES, SUPERUSER}),
    "runs.decision": frozenset({*ROLES, SUPERUSER}),
    "runs.auditevent": frozenset({*ROLES, SUPERUSER}),
    "changes.change": frozenset({*ROLES, SUPERUSER}),
    "changes.riskflag": frozenset({*ROLES, SUPERUSER}),
    "changes.testrun": frozenset({*ROLES, SUPERUSER}),
    "changes.skill": frozenset({*ROLES, SUPERUSER}),
    "auth.user": ADMINISTRATORS,
    "auth.group": ADMINISTRATORS,
}


@pytest.fixture(autouse=True)
def calm(settings, monkeypatch):
    settings.SANDUK_FOUR_EYES = None
    monkeypatch.setattr("sanduk_site.health._Engine.word", lambda self: "ok")
    monkeypatch.setattr("sanduk_site.examination.Examiner.begin", lambda self: True)


def browser(who: str) -> Client:
    client = Client()
    if who == SUPERUSER:
        client.force_login(get_user_model().objects.create_superuser(who))
    elif who != STRANGER:
        client.force_login(somebody(who, who))
    return client


def address(name: str) -> str:
    session = LoginSession.objects.first()
    return PAGES[name][0].format(token=links.new(), session=session.pk if session else 1)


def patterns(found) -> list[URLPattern]:
    flat: list[URLPattern] = []
    for each in found:
        flat += patterns(each.url_patterns) if isinstance(each, URLResolver) else [each]
    return flat


def test_every_address_is_in_a_table():
    names = set()
    for each in patterns(get_resolver().url_patterns):
        module = each.lookup_str
        if module.startswith((*OTHER_TABLE, CHANGES_TABLE)):
            continue
        if module.startswith("sanduk_site.api."):
            continue  # what terminals ask, in test_api.py
        if "admin" in module or str(each.name).startswith(
            ("auth_", "runs_", "assistants_", "changes_")
        ):
            continue  # of the models in SHOWN, which the next test looks at
        names.add(str(each.name))
    # what the admin has beside its models' pages
    own = {"index", "login", "logout", "password_change", "password_change_done", "autocomplete",
           "jsi18n", "view_on_site", "app_list", "None"}  # fmt: skip
    assert names - own == set(PAGES)


def test_every_model_that_the_admin_shows_is_in_the_table():
    assert get_resolver().url_patterns  # what has addresses is registered by then
    assert {model._meta.label_lower for model in admin.site._registry} == set(SHOWN)


@pytest.mark.parametrize("who", WHO)
def test_each_may_exactly_what_the_table_says(who):
    client = browser(who)
    for name, (_, answers, may) in PAGES.items():
        for method in METHODS:
            answer = client.generic(method, address(name))
            told = (name, method, answer.status_code)
            if who not in may:
                turned_away = answer.status_code in (403, 405)
                assert turned_away or answer["Location"].startswith("/admin/login/"), told
            elif method not in answers:
                assert answer.status_code == 405, told
            else:
                assert answer.status_code in (200, 302, 404, 409, 503), told
                assert not answer.get("Location", "").startswith("/admin/login/"), told
        if name == "session-end" and who in may:
            client = browser_again(client, who)


def browser_again(client: Client, who: str) -> Client:
    """Whoever has signed themselves out signs in again."""
    client.force_login(get_user_model().objects.get(username=who))
    return client


@pytest.mark.parametrize("who", WHO)
def test_the_admins_lists_open_for_whom_the_table_says_and_evidence_for_nobody_to_change(who):
    client = browser(who)
    for label, may in SHOWN.items():
        model = apps.get_model(label)
        place = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        listed = client.get(place)
        if who not in may:
            assert listed.status_code in (302, 403), (label, listed.status_code)
        else:
            assert listed.status_code == 200, label
        if model._meta.app_label in ("runs", "changes"):
            assert client.get(f"{place}add/").status_code in (302, 403), label
            assert client.post(f"{place}add/", {}).status_code in (302, 403), label


@pytest.mark.parametrize("who", [*ROLES, SUPERUSER])
def test_looking_at_any_address_changes_nothing(who):
    client = browser(who)
    client.get("/sessions")
    wrote = []
    for name in PAGES:
        place = address(name)
        for method in ("GET", "HEAD"):
            with CaptureQueriesContext(connection) as asked:
                client.generic(method, place)
            writes = [q["sql"] for q in asked if q["sql"].split()[0] in WRITES]
            wrote += [(name, method, sql) for sql in writes]
    assert not wrote


WRITES = {"INSERT", "UPDATE", "DELETE", "REPLACE"}


@pytest.mark.parametrize("role", ROLES)
def test_no_role_but_the_administrators_may_change_people(role):
    may = {right for right in roles.RIGHTS[role] if right.startswith("auth.")}
    assert bool(may) == (role == "administrator")


def test_a_form_without_its_token_changes_nothing():
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(get_user_model().objects.create_superuser("root"))
    for name, (_, answers, _) in PAGES.items():
        if "POST" in answers:
            assert strict.post(address(name), {"team": "team"}).status_code == 403, name
