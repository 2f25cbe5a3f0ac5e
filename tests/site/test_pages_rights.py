"""Every address, every role, every method: who may look and do; looking changes nothing."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from tests.site.pages import hostile_place, somebody

pytestmark = pytest.mark.django_db

ALL = frozenset({"viewer", "operator", "approver", "administrator"})
OPERATE = frozenset({"operator", "administrator"})
APPROVE = frozenset({"approver", "administrator"})
ADMINISTER = frozenset({"administrator"})
# name of our pages: which arguments, which roles, and the methods it answers
PAGES = {
    "home": ((), ALL, "GET"),
    "waiting": ((), ALL, "GET"),
    "spend": ((), ALL, "GET"),
    "system": ((), ALL, "GET"),
    "run-new": ((), OPERATE, "GET"),
    "run-start": ((), OPERATE, "POST"),
    "images": ((), ALL, "GET"),
    "recipe": (("recipe",), ALL, "GET"),
    "run": (("run",), ALL, "GET"),
    "run-report": (("run",), ALL, "GET"),
    "run-stop": (("run",), OPERATE, "POST"),
    "run-again": (("run",), OPERATE, "POST"),
    "run-allow": (("run", "attempt"), ADMINISTER, "GET"),
    "run-allow-now": (("run", "attempt"), ADMINISTER, "POST"),
    "assistant-security": (("assistant",), ADMINISTER, "GET"),
    "assistant-security-say": (("assistant",), ADMINISTER, "POST"),
    "outbox": ((), ALL, "GET"),
    "outbox-filters": ((), ALL, "POST"),
    "outbox-reject": ((), APPROVE, "POST"),
    "outbox-item": (("item",), ALL, "GET"),
    "outbox-body": (("item",), ALL, "GET"),
    "outbox-decide": (("item",), APPROVE, "POST"),
    "outbox-deliver": (("item",), APPROVE, "POST"),
    "assistants": ((), ALL, "GET"),
    "assistant": (("assistant",), ALL, "GET"),
    "assistant-brief": (("assistant",), ALL, "GET"),
    "assistant-tell": (("assistant",), OPERATE, "POST"),
    "assistant-untell": (("assistant", "message"), OPERATE, "POST"),
    "assistant-wake": (("assistant",), OPERATE, "POST"),
    "assistant-switch": (("assistant",), OPERATE, "POST"),
    "assistant-share": (("assistant",), ALL, "POST"),
    "memory": (("snapshot",), ALL, "GET"),
    "memory-review": (("snapshot",), APPROVE, "POST"),
}
# asynchronous: test_live_trace.py
ELSEWHERE = {"run-events"}
OURS = (
    "runs.views",
    "runs.image_pages",
    "assistants.views",
    "sanduk_site.home",
    "sanduk_site.pages",
    "sanduk_site.security_pages",
    "sanduk_site.sharing_pages",
)


def names_of(patterns, ours=OURS) -> set[str]:
    found: set[str] = set()
    for each in patterns:
        if isinstance(each, URLResolver):
            found |= names_of(each.url_patterns, ours)
        elif isinstance(each, URLPattern) and each.lookup_str.startswith(ours):
            found.add(str(each.name))
    return found


def address(name: str, place) -> str:
    known = {
        "run": place.run.uid,
        "attempt": 2,
        "recipe": "pi",
        "item": place.item.pk,
        "assistant": place.assistant.name,
        "message": place.message.pk,
        "snapshot": place.snapshot.pk,
    }
    return reverse(name, args=[known[word] for word in PAGES[name][0]])


def test_every_address_of_ours_is_in_this_table():
    assert names_of(get_resolver().url_patterns) == {*PAGES, *ELSEWHERE}


@pytest.mark.parametrize("role", [*sorted(ALL), "nobody"])
def test_each_role_may_exactly_what_the_table_says(client, role):
    place = hostile_place()
    client.force_login(somebody("person", *([role] if role in ALL else [])))
    for name, (_, roles, method) in PAGES.items():
        answer = client.generic(method, address(name, place))
        may = role in roles or name in ("home", "waiting")
        assert (answer.status_code == 403) != may, (name, answer.status_code)


def test_strangers_are_sent_to_log_in_and_come_back(client):
    place = hostile_place()
    for name, (_, _, method) in PAGES.items():
        answer = client.generic(method, address(name, place))
        assert answer.status_code == 302, name
        assert answer["Location"].startswith(reverse("admin:login")), name
    answer = client.get(f"{address('outbox-item', place)}?show=raw")
    assert answer["Location"].endswith(f"?next=/outbox/{place.item.pk}/%3Fshow%3Draw")


def test_a_form_that_came_after_the_session_ended_leads_back_to_its_page(client):
    place = hostile_place()
    page = address("outbox-item", place)
    form = address("outbox-decide", place)
    answer = client.post(
        form, {"verdict": "approve"}, headers={"referer": f"http://testserver{page}"}
    )
    assert answer["Location"].endswith(f"?next={page}")
    answer = client.post(form, headers={"referer": "https://evil.example/x"})
    assert answer["Location"].endswith("?next=/")


def test_a_person_who_is_no_longer_active_sees_nothing(client):
    person = somebody("person", "administrator")
    client.force_login(person)
    person.is_active = False
    person.save()
    assert client.get(reverse("home")).status_code == 302


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_looking_changes_nothing_at_any_address(client, method):
    place = hostile_place()
    client.force_login(somebody("person", "administrator"))
    client.get(reverse("home"))
    for name, (_, _, answers) in PAGES.items():
        with CaptureQueriesContext(
            connection,
        ) as asked:
            answer = client.generic(method, address(name, place))
        wrote = [each["sql"] for each in asked if each["sql"].split()[0] in WRITES]
        wrote = [sql for sql in wrote if "session" not in sql]
        assert not wrote, (name, wrote)
        assert answer.status_code == (200 if answers == "GET" else 405), name


WRITES = {"INSERT", "UPDATE", "DELETE", "REPLACE"}


def test_a_decision_without_the_forms_token_is_refused(client):
    from django.test import Client

    place = hostile_place()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(somebody("person", "administrator"))
    for name, (_, _, method) in PAGES.items():
        if method == "POST":
            assert strict.post(address(name, place)).status_code == 403, name


def test_the_count_of_what_waits_is_for_who_may_decide(client):
    hostile_place()
    client.force_login(somebody("vera", "viewer"))
    assert client.get(reverse("waiting")).json() == {"waiting": 0}
    client.force_login(somebody("ada", "approver"))
    assert client.get(reverse("waiting")).json() == {"waiting": 2}
    assert "<title>(2) Home" in client.get(reverse("home")).content.decode()
