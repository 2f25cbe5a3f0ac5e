"""What a site elsewhere answers is read strictly; a fault of our own is no odd answer."""

from __future__ import annotations

import json

import pytest

from assistants.management import answers
from assistants.management.answers import Decided, Item, Me, Message, OddAnswer, Told, WholeItem
from assistants.management.commands import sanduk_outbox
from runs import site_login
from runs.site_login import Site
from tests.site.pages import HIDING
from tests.site.test_login_command import ada, config, item, logged_in, roles, sanduk

__all__ = ["ada", "config", "item", "logged_in", "roles", "sanduk"]
pytestmark = pytest.mark.django_db(transaction=True)
SITE = Site("https://sanduk.example", "sanduk-x")
ITEM = {
    "id": 1, "assistant": "daily", "run": "", "created_at": "2026-01-01T00:00:00Z",
    "state": "pending", "body": "said",
}  # fmt: skip
WHOLE = ITEM | {
    "risks": [], "standing": ["waits"], "goes_to": [], "pending": True, "expect": "0f:1e",
    "deliveries": [{"destination": "mail", "state": "sent", "error": ""}],
}  # fmt: skip
MESSAGE = {
    "id": 1, "assistant": "daily", "created_at": "2026-01-01T00:00:00Z", "state": "waiting",
    "source": "web", "account": "", "author": None, "body": "said",
}  # fmt: skip
ME = {"user": "ada", "roles": ["viewer"], "may_decide": True, "expires_at": "2026-01-01"}
TOLD = {"id": 1, "assistant": "daily", "new": True, "disabled": False}
EVERY = (
    (Item, ITEM), (WholeItem, WHOLE), (Decided, {"state": "approved", "missing": 0}),
    (Message, MESSAGE), (Told, TOLD), (Me, ME),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "good"), EVERY)
def test_each_field_that_is_missing_or_of_another_type_is_refused_by_name(kind, good):
    assert isinstance(answers.read(SITE, kind, good | {"newer": "left out"}), kind)
    for name in good:
        for odd in ({}, 1.5, "1" if isinstance(good[name], int) else 1):
            with pytest.raises(OddAnswer, match=rf"as this sanduk expects: .*\$\.{name}"):
                answers.read(SITE, kind, good | {name: odd})
        with pytest.raises(OddAnswer, match=name):
            answers.read(SITE, kind, {key: good[key] for key in good if key != name})


@pytest.mark.parametrize("odd", [None, [], "x", 3, [ITEM, None], [[ITEM]]])
def test_an_answer_of_another_shape_is_refused(odd):
    with pytest.raises(OddAnswer, match=r"^https://sanduk\.example did not answer as"):
        answers.read(SITE, WholeItem, odd)
    if odd != []:
        with pytest.raises(OddAnswer):
            answers.read(SITE, list[Item], odd)


@pytest.mark.parametrize(
    "words",
    [("outbox",), ("outbox", "show", "1"), ("tell", "daily", "x"), ("inbox",), ("login",),
     ("approve", "1", "--expect", "0f:1e")],
)  # fmt: skip
@pytest.mark.parametrize("flag", [(), ("--json",)])
def test_every_command_says_in_one_line_that_the_answer_is_odd(
    config, sanduk, monkeypatch, words, flag
):
    site_login.keep(SITE)
    odd = {"id": "\x1b[2J\u202e", "assistant": ["daily"]}
    monkeypatch.setattr(Site, "_asked", lambda *_: odd)

    code, out, err = sanduk(*words, *flag)

    assert (code, out) == (2, "")
    assert "did not answer as this sanduk expects" in err
    assert not any(mark in err for mark in HIDING)
    assert "Traceback" not in err


@pytest.mark.parametrize("fault", [KeyError, TypeError, ValueError, AttributeError])
def test_a_fault_of_our_own_is_no_odd_answer(logged_in, item, sanduk, monkeypatch, fault):
    def show(*_):
        raise fault("ours")

    monkeypatch.setattr(sanduk_outbox.elsewhere, "show", show)

    with pytest.raises(fault, match="ours"):
        sanduk("outbox", "show", str(item.pk))


def test_what_the_site_really_answers_is_as_expected(logged_in, item, sanduk):
    for words in (("outbox", "--json"), ("outbox", "show", str(item.pk), "--json")):
        code, out, err = sanduk(*words)
        assert code == 0, err
        assert json.loads(out)
    assert sanduk("tell", "daily", "more", "--json")[0] == 0
    assert sanduk("inbox", "--json")[0] == 0
    assert sanduk("login", "--json")[0] == 0
