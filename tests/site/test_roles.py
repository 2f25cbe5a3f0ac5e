"""Four roles, what each may, and that an upgrade sets exactly that."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command

from runs.models import AuditEvent
from runs.refusal import Refusal
from sanduk_site import roles

pytestmark = pytest.mark.django_db


def somebody(name: str = "anna", *given: str):
    user = get_user_model().objects.create_user(name)
    user.groups.set(Group.objects.filter(name__in=given))
    return user


def test_every_role_is_there_after_migrate_with_exactly_its_rights():
    for role, rights in roles.RIGHTS.items():
        permissions = Group.objects.get(name=role).permissions.select_related("content_type")
        assert {f"{p.content_type.app_label}.{p.codename}" for p in permissions} == rights


def test_migrating_again_puts_back_what_was_taken_and_takes_what_was_added():
    viewer = Group.objects.get(name="viewer")
    viewer.permissions.set(Permission.objects.filter(codename="stop_run"))

    call_command("migrate", verbosity=0)

    assert not somebody("v", "viewer").has_perm("runs.stop_run")
    assert somebody("w", "viewer").has_perm("runs.view_run")


@pytest.mark.parametrize(
    ("role", "may", "may_not"),
    [
        ("viewer", "runs.view_run", "runs.stop_run"),
        ("operator", "assistants.wake_assistant", "assistants.decide_outboxitem"),
        ("approver", "assistants.decide_outboxitem", "assistants.tell_assistant"),
        ("administrator", "runs.view_request_bodies", "runs.delete_run"),
        ("operator", "runs.start_run", "assistants.change_assistant_security"),
        ("approver", "assistants.review_memory", "runs.view_request_bodies"),
    ],
)
def test_a_role_gives_what_its_word_says_and_no_more(role, may, may_not):
    person = somebody("p", role)
    assert person.has_perm(may)
    assert not person.has_perm(may_not)


def test_roles_add_up_and_giving_them_is_written_down():
    somebody("root", "administrator")
    anna = somebody("anna", "viewer")

    roles.give(anna, ["operator", "approver"])

    anna = get_user_model().objects.get(pk=anna.pk)
    assert roles.of(anna) == ["operator", "approver"]
    assert anna.has_perm("runs.stop_run")
    assert anna.has_perm("assistants.decide_outboxitem")
    assert anna.is_staff
    (event,) = AuditEvent.objects.filter(action="user.role")
    assert event.detail == {"roles": ["approver", "operator"]}


def test_a_group_of_the_operators_own_stays_when_roles_change():
    somebody("root", "administrator")
    anna = somebody()
    anna.groups.add(Group.objects.create(name="night shift"))

    roles.give(anna, ["viewer"])

    assert set(anna.groups.values_list("name", flat=True)) == {"viewer", "night shift"}


def test_the_last_administrator_stays_one():
    root = somebody("root", "administrator")

    with pytest.raises(Refusal, match="last administrator"):
        roles.give(root, ["viewer"])

    assert roles.of(root) == ["administrator"]


def test_a_superuser_who_is_given_less_is_none_any_more():
    somebody("other", "administrator")
    root = get_user_model().objects.create_superuser("root")

    roles.give(root, ["viewer"])

    root = get_user_model().objects.get(pk=root.pk)
    assert not root.is_superuser
    assert not root.has_perm("runs.stop_run")
