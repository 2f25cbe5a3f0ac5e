"""A terminal elsewhere does what its person may, and its token lets it; nothing else."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from django.conf import settings as django_settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from assistants import belonging, places
from assistants.models import Destination, InboxMessage
from runs import clock
from runs.models import AuditEvent, Decision
from runs.refusal import Refusal
from sanduk_site import api, api_access, people, terminal_tokens
from sanduk_site.models import TerminalToken
from tests.factories import make_assistant
from tests.site.pages import EVIL, make_item, somebody

pytestmark = pytest.mark.django_db
ROLES = ("viewer", "operator", "approver", "administrator")
WHO = ("nobody", *ROLES, "superuser")
EVERYBODY = frozenset(WHO)
SEES = EVERYBODY - {"nobody"}
DECIDES = frozenset({"approver", "administrator", "superuser"})
# by name: its address, its method, and who may
PLACES = {
    "api-me": ("me", "GET", EVERYBODY),
    "api-outbox": ("outbox", "GET", SEES),
    "api-item": ("outbox/{item}", "GET", SEES),
    "api-decide": ("outbox/{item}/decide", "POST", DECIDES),
    "api-inbox": ("inbox", "GET", SEES),
    "api-tell": ("inbox/daily", "POST", frozenset({"operator", "administrator", "superuser"})),
    "api-leave": ("leave", "POST", EVERYBODY),
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@pytest.fixture(autouse=True)
def calm(settings):
    settings.SANDUK_FOUR_EYES = None
    api_access.GUESSES.forget()
    api_access.ASKED.forget()


@pytest.fixture
def item():
    return make_item(make_assistant("daily"), EVIL)


class Terminal:
    """Asks as a terminal does, with one token."""

    def __init__(self, token: str) -> None:
        self.token, self.client = token, Client(enforce_csrf_checks=True)

    def ask(self, place: str, method: str = "GET", sent: object = None, **headers: str):
        given = {} if sent is None else {"data": json.dumps(sent)}
        return self.client.generic(
            method, f"/api/1/{place}", content_type="application/json",
            headers={"Authorization": f"Bearer {self.token}", **headers}, **given,
        )  # fmt: skip

    def decide(self, item, verdict: str = "approve", **more):
        expect = more.pop("expect", api._expected(item))
        sent = {"verdict": verdict, "expect": expect, "reason": "read", **more}
        return self.ask(f"outbox/{item.pk}/decide", "POST", sent)


def terminal(name: str, *roles: str, may_decide: bool = True) -> Terminal:
    user = get_user_model().objects.filter(username=name).first() or somebody(name, *roles)
    return Terminal(terminal_tokens.new(user, "laptop", may_decide=may_decide))


def test_every_address_is_in_the_table():
    assert {each.name for each in api.urlpatterns} == set(PLACES)


@pytest.mark.parametrize("who", WHO)
def test_each_may_exactly_what_the_table_says_and_no_cookie_helps(who, item):
    if who == "superuser":
        user = get_user_model().objects.create_superuser(who)
    else:
        user = somebody(who, who)
    asks = terminal(who)
    cookie = Client()
    cookie.force_login(user)
    for place, method, may in PLACES.values():
        address = place.format(item=item.pk)
        for each in METHODS:
            assert cookie.generic(each, f"/api/1/{address}").status_code in (401, 405)
            if each != method:
                assert asks.ask(address, each, {}).status_code == 405, (place, each)
        api_access.GUESSES.forget()
        answer = asks.ask(address, method, {} if method == "POST" else None)
        told = (place, answer.status_code, answer.content)
        # what holds no sense is refused only to those who may
        assert answer.status_code in ((200, 409) if who in may else (403,)), told


@pytest.mark.parametrize(
    "token", ["", "x", "sanduk-", "sanduk-none", "sanduk-" + "x" * 500, "sanduk-\u00e9"]
)
def test_what_is_no_token_is_told_nothing(token, item):
    answer = Terminal(token.encode().decode("latin-1")).ask("outbox")
    assert answer.status_code == 401
    assert b"daily" not in answer.content


def test_an_ended_an_expired_and_a_shut_out_persons_token_let_nobody_in(monkeypatch):
    asks = terminal("ada", "viewer")
    ada = get_user_model().objects.get()
    assert asks.ask("me").status_code == 200
    people_off = terminal("ada")
    somebody("root", "administrator")
    people.shut_out(ada)
    people.let_in(ada)
    assert asks.ask("me").status_code == people_off.ask("me").status_code == 401
    asks = terminal("ada")
    assert asks.ask("leave", "POST", {}).json() == {"ended": True}
    assert asks.ask("me").status_code == 401
    asks = terminal("ada")
    at = clock.now() + dt.timedelta(days=terminal_tokens.DAYS, seconds=1)
    monkeypatch.setattr(clock, "now", lambda: at)
    assert asks.ask("me").status_code == 401


def test_only_its_hash_is_kept_and_no_record_holds_it():
    token = terminal_tokens.new(somebody("ada"), "laptop")
    kept = TerminalToken.objects.values().get()
    assert token not in str(kept)
    assert token not in str(list(AuditEvent.objects.values()))
    assert AuditEvent.objects.get().action == "token.new"


def test_guessing_is_stopped_and_so_is_asking_without_end(item):
    good = terminal("ada", "viewer")
    answers = [Terminal("sanduk-guess").ask("me").status_code for _ in range(25)]
    assert answers == [401] * 20 + [429] * 5
    stopped = good.ask("me")  # from the same address: nothing is learned by trying on
    assert (stopped.status_code, stopped["Retry-After"]) == (429, "300")
    api_access.GUESSES.forget()
    answers = {good.ask("me").status_code for _ in range(250)}
    assert answers == {200, 429}


def test_looking_writes_nothing_but_when_the_token_was_used(item):
    asks = terminal("ada", "viewer")
    asks.ask("me")
    for place in ("me", "outbox", f"outbox/{item.pk}", "inbox"):
        with CaptureQueriesContext(connection) as asked:
            assert asks.ask(place).status_code == 200
        assert not [q["sql"] for q in asked if q["sql"].split()[0] in ("INSERT", "UPDATE")]


def test_an_item_is_read_and_exactly_that_is_approved_with_whose_word_it_was(item):
    asks = terminal("ada", "approver")
    (row,) = asks.ask("outbox?pending=1").json()
    assert row["id"] == item.pk
    whole = asks.ask(f"outbox/{item.pk}").json()
    assert whole["body"] == EVIL
    answer = asks.decide(item, expect=whole["expect"])
    assert (answer.status_code, answer.json()["state"]) == (200, "approved")
    decision = Decision.objects.get()
    assert (decision.actor.username, decision.via, decision.reason) == ("ada", "token", "read")
    again = asks.decide(item)
    assert again.status_code == 409
    assert "already approved by ada" in again.json()["error"]


@pytest.mark.parametrize(
    "expect", ["", "abc", "{digest}", "{digest}:", "{digest}:0123456789ab", "0123456789ab:{places}",
               "{digest}:{short}", None, 7],
)  # fmt: skip
def test_an_approval_that_does_not_say_what_was_read_and_where_it_goes_is_refused(item, expect):
    if isinstance(expect, str):
        leads = places.digest_of_places(item)
        expect = expect.format(digest=item.sha256, places=leads, short=leads[:11])
    answer = terminal("ada", "approver").decide(item, expect=expect)
    assert answer.status_code == 409, answer.content
    assert not Decision.objects.exists()


def test_a_destination_that_was_changed_meanwhile_is_refused(item):
    asks = terminal("ada", "approver")
    expect = asks.ask(f"outbox/{item.pk}").json()["expect"]
    place = Destination.objects.create(name="mail", kind="file", config={"path": "/srv/out"})
    item.assistant.destinations.add(place)
    answer = asks.decide(item, expect=expect)
    assert "is not what was read" in answer.json()["error"]
    assert "/srv/out" in str(asks.ask(f"outbox/{item.pk}").json()["goes_to"])
    assert asks.decide(item, "reject", expect=expect, reason="no").status_code == 200


def test_a_token_without_that_right_decides_nothing_and_four_eyes_hold(item, settings):
    reads = terminal("ada", "approver", may_decide=False)
    assert reads.decide(item).status_code == 403
    settings.SANDUK_FOUR_EYES = True
    asks = terminal("olga", "operator", "approver")
    fed = InboxMessage.objects.create(
        assistant=item.assistant, body="do", author=get_user_model().objects.get(username="olga")
    )
    fed.given_to.set([item.wakeup])
    answer = asks.decide(item)
    assert "cannot approve it" in answer.json()["error"]
    assert asks.decide(item, "postpone").status_code == 409


def test_what_is_somebody_elses_is_not_there(item):
    belonging.give_to(item.assistant, somebody("anna"))
    asks = terminal("ada", *ROLES[:3])
    assert asks.ask("outbox").json() == asks.ask("inbox").json() == []
    for answer in (
        asks.ask(f"outbox/{item.pk}"), asks.decide(item), asks.ask("outbox?name=daily"),
        asks.ask("inbox?name=daily"), asks.ask("inbox/daily", "POST", {"text": "hello"}),
        asks.ask("outbox/999"),
    ):  # fmt: skip
        assert answer.status_code == 404
    assert not InboxMessage.objects.exists()


def test_a_message_is_told_once_and_is_that_persons():
    make_assistant("daily")
    asks = terminal("olga", "operator")
    sent = {"text": "leave the weekend out", "source_id": "mail-1"}
    first, again = (asks.ask("inbox/daily", "POST", sent).json() for _ in range(2))
    assert (first["new"], again["new"], again["id"]) == (True, False, first["id"])
    (row,) = asks.ask("inbox").json()
    assert (row["author"], row["body"]) == ("olga", "leave the weekend out")
    assert asks.ask("inbox/daily", "POST", {"text": ["x"]}).status_code == 409


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'"x"', b"\xff", b"[" * 100_000, b"x" * 300_000]
)
def test_what_is_no_json_object_is_refused(body):
    make_assistant("daily")
    asks = terminal("olga", "operator")
    answer = asks.client.post(
        "/api/1/inbox/daily", body, content_type="application/json",
        headers={"Authorization": f"Bearer {asks.token}"},
    )  # fmt: skip
    assert answer.status_code == 409
    assert "JSON" in answer.json()["error"]


@pytest.mark.parametrize("limit", ["0", "-1", "x", "1001", "²"])
def test_no_number_is_no_limit(limit):
    assert terminal("ada", "viewer").ask(f"outbox?limit={limit}").status_code == 409


@pytest.mark.parametrize(
    ("name", "days"), [("", 9), (" ", 9), ("x" * 81, 9), ("a\nb", 9), ("x", 0), ("x", 366)]
)
def test_a_token_has_a_name_and_an_end(name, days):
    with pytest.raises(Refusal):
        terminal_tokens.new(somebody("ada"), name, days=days)


PASSWORD = "correct horse 7 battery"


@pytest.fixture
def ada(client):
    user = get_user_model().objects.create_superuser("ada", "", PASSWORD)
    client.post("/admin/login/", {"username": "ada", "password": PASSWORD})
    return user


FORM = {"name": f"laptop {EVIL[:20]}", "days": "30", "may_decide": "on"}


def test_the_page_shows_a_token_once_that_lets_in(client, ada):
    page = client.post(reverse("terminal-new"), FORM).content.decode()
    token = page.partition("<pre><code>sanduk-")[2].partition("<")[0]
    assert f"sanduk login {django_settings.SANDUK_BASE_URL}" in page
    told = Terminal(f"sanduk-{token}").ask("me").json()
    assert (told["user"], told["may_decide"]) == ("ada", True)
    listed = client.get(reverse("sessions")).content.decode()
    assert token not in listed
    assert "<script>" not in page + listed
    pk = TerminalToken.objects.get().pk
    client.post(reverse("terminal-end", args=[pk]))
    assert Terminal(f"sanduk-{token}").ask("me").status_code == 401
    assert AuditEvent.objects.filter(action="token.end", actor=ada).exists()


def test_the_password_is_asked_for_when_it_was_given_long_ago(client, ada, monkeypatch):
    at = clock.now() + dt.timedelta(minutes=11)
    monkeypatch.setattr("runs.clock.now", lambda: at)
    assert client.post(reverse("terminal-new"), FORM).status_code == 403
    assert not TerminalToken.objects.exists()
    given = {**FORM, "sudo_go_on": "post", "sudo_password": PASSWORD}
    assert "is let in" in client.post(reverse("terminal-new"), given).content.decode()


NONSENSE = [{}, {"name": "x"}, {"name": "x", "days": "x"}, {"name": "x", "days": "9999"},
            {"name": "", "days": "9"}]  # fmt: skip


@pytest.mark.parametrize("form", NONSENSE)
def test_a_form_that_makes_no_sense_makes_none(client, ada, form):
    assert client.post(reverse("terminal-new"), form).status_code == 302
    assert not TerminalToken.objects.exists()


def test_nobody_but_administrators_ends_anothers(client):
    terminal("ada", "viewer")
    pk = TerminalToken.objects.get().pk
    client.force_login(somebody("ben", "operator"))
    assert client.post(reverse("terminal-end", args=[pk])).status_code == 404
    client.force_login(somebody("root", "administrator"))
    client.post(reverse("terminal-end", args=[pk]))
    assert TerminalToken.objects.get().ended_by == "root"
