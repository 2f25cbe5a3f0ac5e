"""An OS account is one site user at a terminal, or nobody."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User

from runs.models import AuditEvent
from runs.models.people import user_of
from runs.refusal import Refusal
from sanduk_site.management.commands import sanduk_user

pytestmark = pytest.mark.django_db


def act(*words: str) -> int:
    command = sanduk_user.Command()
    parser = command.create_parser("sanduk", "sanduk_user")
    return command.act(**vars(parser.parse_args(list(words))))


def test_an_account_is_mapped_listed_and_unmapped(capsys):
    anna = User.objects.create(username="anna")

    assert act("map", "ann", "anna") == 0
    assert user_of("ann") == anna
    assert act("list", "--json") == 0
    (person,) = json.loads(capsys.readouterr().out)
    assert (person["user"], person["account"], person["roles"]) == ("anna", "ann", [])
    assert act("unmap", "ann") == 0
    assert act("unmap", "ann") == 1
    assert user_of("ann") is None
    actions = AuditEvent.objects.order_by("number").values_list("action", flat=True)
    assert list(actions) == ["user.map", "user.unmap"]


def test_one_account_is_one_person_and_one_person_one_account():
    User.objects.create(username="anna")
    User.objects.create(username="boris")
    act("map", "ann", "anna")

    for words in (("ann", "boris"), ("other", "anna")):
        with pytest.raises(Refusal, match="already"):
            act("map", *words)
    with pytest.raises(Refusal, match="no site user"):
        act("map", "other", "nobody")
    with pytest.raises(Refusal, match="needs an ACCOUNT"):
        act("map", "other")


def test_a_user_who_was_shut_out_decides_nothing():
    User.objects.create(username="anna", is_active=False)
    act("map", "ann", "anna")

    assert user_of("ann") is None
