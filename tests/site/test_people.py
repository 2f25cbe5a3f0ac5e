"""`sanduk user`: accounts, roles, links, and shutting somebody out."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth import get_user_model

from runs import four_eyes
from runs.models import AuditEvent
from runs.refusal import Refusal
from sanduk_site import links
from sanduk_site.management.commands import sanduk_user
from sanduk_site.models import LoginSession, OneTimeLink

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse 7 battery"


def act(*words: str) -> int:
    command = sanduk_user.Command()
    parser = command.create_parser("sanduk", "sanduk_user")
    return command.act(**vars(parser.parse_args(list(words))))


def added(capsys, *words: str) -> str:
    """The path of the link that came with it."""
    assert act("add", *words) == 0
    return "/setup/" + capsys.readouterr().out.strip().rpartition("/")[2]


def the(name: str):
    return get_user_model().objects.get(username=name)


@pytest.fixture
def root():
    return get_user_model().objects.create_superuser("root", "", PASSWORD)


def test_a_new_person_sets_a_password_with_the_link_and_is_signed_in(client, capsys, root):
    path = added(capsys, "anna", "approver")
    assert not the("anna").has_usable_password()

    page = client.get(path)
    assert page.status_code == 200
    answer = client.post(path, {"password": PASSWORD, "again": PASSWORD})

    assert (answer.status_code, answer.url) == (302, "/")
    assert client.session["_auth_user_id"] == str(the("anna").pk)
    assert the("anna").check_password(PASSWORD)
    assert client.post(path, {"password": "x" * 20, "again": "x" * 20}).status_code == 410
    assert not the("anna").is_superuser


def test_two_passwords_that_differ_or_a_weak_one_use_nothing_up(client, capsys):
    path = added(capsys, "anna")
    for given in (("correct horse 7", "correct horse 8"), ("anna", "anna"), ("", "")):
        page = client.post(path, {"password": given[0], "again": given[1]})
        assert page.status_code == 200
        assert b"errornote" in page.content

    assert client.get(path).status_code == 200


def test_a_new_link_ends_the_old_one_and_only_its_digest_is_kept(client, capsys):
    first = added(capsys, "anna")
    act("link", "anna")
    second = "/setup/" + capsys.readouterr().out.strip().rpartition("/")[2]

    assert client.get(first).status_code == 410
    assert client.get(second).status_code == 200
    kept = repr(list(OneTimeLink.objects.values()))
    assert first.rpartition("/")[2] not in kept
    assert second.rpartition("/")[2] not in kept


def test_a_link_expires(client, capsys, monkeypatch):
    path = added(capsys, "anna")
    link = OneTimeLink.objects.get()
    monkeypatch.setattr("runs.clock.now", lambda: link.expires_at)

    assert client.get(path).status_code == 410


def test_the_first_administrators_link_is_worth_nothing_once_there_is_one(client, root):
    path = f"/setup/{links.new()}"

    answer = client.post(path, {"username": "eve", "password": PASSWORD, "again": PASSWORD})

    assert answer.status_code == 409
    assert not get_user_model().objects.filter(username="eve").exists()


def test_somebody_who_is_shut_out_is_out_at_once_and_can_be_let_in_again(client, capsys, root):
    client.post(added(capsys, "anna"), {"password": PASSWORD, "again": PASSWORD})
    assert client.get("/").status_code == 200

    assert act("off", "anna") == 0

    assert client.get("/").status_code == 302
    assert LoginSession.objects.get(user=the("anna")).ended_at is not None
    with pytest.raises(Refusal, match="shut out"):
        act("link", "anna")
    assert act("on", "anna") == 0
    assert the("anna").is_active


def test_the_last_administrator_cannot_be_shut_out(root):
    with pytest.raises(Refusal, match="last administrator"):
        act("off", "root")

    assert the("root").is_active


def test_people_are_listed_with_roles(capsys, root):
    added(capsys, "anna", "operator", "approver")

    act("list", "--json")
    found = {each["user"]: each for each in json.loads(capsys.readouterr().out)}
    assert found["anna"]["roles"] == ["operator", "approver"]
    assert found["root"]["superuser"] is True
    act("list")
    assert "operator, approver" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ("add",), ("add", "anna", "king"), ("add", "an na"), ("role", "root"), ("role", "nobody"),
        ("link", "nobody"), ("four-eyes", "maybe"), ("off",), ("map", "x"), ("list", "x"),
        ("add", "root"), ("add", "anna", "--json"),
    ],
)  # fmt: skip
def test_what_means_nothing_is_refused_and_changes_nothing(words, root):
    with pytest.raises(Refusal):
        act(*words)

    assert get_user_model().objects.count() == 1


def test_four_eyes_are_chosen_written_down_and_only_made_stricter_by_the_environment(settings):
    settings.SANDUK_FOUR_EYES = None
    assert four_eyes.is_on() is False
    act("four-eyes", "on")
    act("four-eyes", "on")
    assert four_eyes.is_on() is True
    assert AuditEvent.objects.filter(action="site.four-eyes").count() == 1

    settings.SANDUK_FOUR_EYES = False
    assert four_eyes.is_on() is True, "who decides also sets their shell's environment"
    act("four-eyes", "off")
    assert four_eyes.is_on() is False
    assert AuditEvent.objects.filter(action="site.four-eyes").count() == 2

    settings.SANDUK_FOUR_EYES = True
    assert four_eyes.is_on() is True
    with pytest.raises(Refusal, match="SANDUK_FOUR_EYES"):
        act("four-eyes", "off")


def test_unlock_forgets_wrong_guesses(client, root):
    for number in range(6):
        page = client.post("/admin/login/", {"username": "root", "password": f"x{number}"})
    assert page.status_code == 429

    act("unlock", "root")

    page = client.post("/admin/login/", {"username": "root", "password": PASSWORD})
    assert page.status_code == 302
