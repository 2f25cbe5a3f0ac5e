"""People in the admin: the rules of `sanduk user` hold there too."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client

from runs import clock
from runs.models import AuditEvent
from tests.site.pages import somebody

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse 7 battery"


def place(user, word: str = "change") -> str:
    return f"/admin/auth/user/{user.pk}/{word}/"


def fields(user, *roles: str, **more: object) -> dict[str, object]:
    """The form as it is filled in when it is opened."""
    joined = user.date_joined
    return {
        "username": user.username,
        "is_active": "on",
        "is_staff": "on",
        "groups": list(Group.objects.filter(name__in=roles).values_list("pk", flat=True)),
        "date_joined_0": f"{joined:%Y-%m-%d}",
        "date_joined_1": f"{joined:%H:%M:%S}",
        **more,
    }


@pytest.fixture
def admin(client):
    user = somebody("admin", "administrator", password=PASSWORD)
    client.force_login(user)
    return user


@pytest.fixture
def anna():
    return somebody("anna", "viewer", password=PASSWORD)


def the(user):
    return get_user_model().objects.get(pk=user.pk)


def test_roles_are_given_there_and_written_down(client, admin, anna):
    assert client.post(place(anna), fields(anna, "operator")).status_code == 302

    assert the(anna).has_perm("runs.stop_run")
    event = AuditEvent.objects.get(action="user.role")
    assert (event.actor, event.subject, event.detail) == (
        admin, "user:anna", {"roles": ["operator"]},
    )  # fmt: skip


def test_an_administrator_makes_nobody_a_superuser_and_changes_none(client, admin, anna):
    client.post(place(anna), fields(anna, "viewer", is_superuser="on"))
    assert not the(anna).is_superuser

    root = get_user_model().objects.create_superuser("root", "", PASSWORD)
    new = {"password1": "another horse 8", "password2": "another horse 8"}
    assert client.post(place(root, "password"), new).status_code == 403
    assert client.post(place(root), fields(root)).status_code == 403
    assert the(root).check_password(PASSWORD)


def link_in(answer) -> str:
    found = re.search(r"/setup/[\w-]+", answer.content.decode())
    assert found, answer.content.decode()
    return found[0]


def setting_a_password(link: str) -> Client:
    """Somebody else's browser, with that link."""
    browser = Client()
    again = {"password": "another horse 8", "again": "another horse 8"}
    assert browser.post(link, again).status_code == 302
    return browser


def test_who_is_added_gets_a_link_and_can_sign_in_with_their_role(client, admin):
    operator = Group.objects.get(name="operator")
    form = {"username": "ben", "groups": [operator.pk]}

    answer = client.post("/admin/auth/user/add/", form, follow=True)

    browser = setting_a_password(link_in(answer))
    assert browser.get("/").status_code == 200
    ben = get_user_model().objects.get(username="ben")
    assert (ben.is_staff, ben.has_perm("runs.stop_run")) == (True, True)
    actions = ["login", "user.add", "user.link", "user.password", "user.role"]
    events = AuditEvent.objects.order_by("action")
    assert [(each.action, each.actor) for each in events] == [
        (action, ben if action in ("login", "user.password") else admin) for action in actions
    ]


def test_a_new_password_is_nobody_elses_to_choose(client, admin, anna):
    assert b'type="password"' not in client.get(place(anna, "password")).content
    new = {"password1": "another horse 8", "password2": "another horse 8"}

    answer = client.post(place(anna, "password"), new, follow=True)

    assert the(anna).check_password(PASSWORD)
    setting_a_password(link_in(answer))
    assert the(anna).check_password("another horse 8")
    assert client.get(place(anna, "password").replace(str(anna.pk), "0")).status_code == 404


def test_guessing_the_old_password_is_throttled_as_at_the_login(client, anna):
    client.force_login(anna)
    form = {"new_password1": "another horse 8", "new_password2": "another horse 8"}
    for number in range(5):
        answer = client.post("/admin/password_change/", {**form, "old_password": f"x{number}"})
    assert answer.status_code == 429

    answer = client.post("/admin/password_change/", {**form, "old_password": PASSWORD})

    assert answer.status_code == 429
    assert the(anna).check_password(PASSWORD)


def test_ones_own_password_is_changed_with_the_old_one_and_written_down(client, anna):
    client.force_login(anna)
    form = {"new_password1": "another horse 8", "new_password2": "another horse 8"}
    wrong = client.post("/admin/password_change/", {**form, "old_password": "x"})
    assert b"old password was entered incorrectly" in wrong.content

    answer = client.post("/admin/password_change/", {**form, "old_password": PASSWORD})

    assert answer.status_code == 302
    assert the(anna).check_password("another horse 8")
    assert AuditEvent.objects.get(action="user.password").actor == anna


def test_the_last_administrator_stays_one(client, admin):
    answer = client.post(place(admin), fields(admin, "viewer"), follow=True)

    assert b"last administrator" in answer.content
    assert [group.name for group in the(admin).groups.all()] == ["administrator"]
    assert not AuditEvent.objects.exists()


def test_nobody_is_deleted_and_the_roles_are_nobodys_to_change(client, anna):
    client.force_login(get_user_model().objects.create_superuser("root"))
    viewer = Group.objects.get(name="viewer")

    assert client.post(place(anna, "delete"), {"post": "yes"}).status_code == 403
    for word in ("change", "delete"):
        role = f"/admin/auth/group/{viewer.pk}/{word}/"
        assert client.post(role, {"post": "yes", "name": "x"}).status_code == 403


def test_changing_a_person_asks_for_the_password_after_ten_minutes(
    client, admin, anna, monkeypatch
):
    later = clock.now() + dt.timedelta(minutes=11)
    monkeypatch.setattr("runs.clock.now", lambda: later)

    page = client.post(place(anna), fields(anna, "operator"))

    assert page.status_code == 403
    assert b"Your password, please" in page.content
    assert not the(anna).has_perm("runs.stop_run")
    again = {**fields(anna, "operator"), "sudo_go_on": "post", "sudo_password": PASSWORD}
    assert client.post(place(anna), again).status_code == 302
    assert the(anna).has_perm("runs.stop_run")


def test_who_is_switched_off_there_is_out_at_once(client, admin, anna):
    theirs = Client()
    theirs.force_login(anna)
    assert theirs.get("/").status_code == 200
    form = fields(anna, "viewer")
    del form["is_active"]

    client.post(place(anna), form)

    assert theirs.get("/").status_code == 302
