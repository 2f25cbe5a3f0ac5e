"""`sanduk share` and `sanduk key` do at a terminal what the pages do, under the same rules."""

from __future__ import annotations

import io
import json

import pytest

from assistants import belonging
from assistants.management.commands import sanduk_key, sanduk_share
from assistants.models import Grant
from runs import audit, credentials, own_keys
from runs.models import AuditEvent, TerminalAccount
from runs.refusal import Refusal
from tests.assistants.waking import assistant_in
from tests.factories import make_assistant
from tests.runs.conftest import state
from tests.site.pages import somebody

__all__ = ["state"]
pytestmark = pytest.mark.django_db
KEY = "sk-annas-own-0123456789abcdef"


@pytest.fixture(autouse=True)
def there(state):
    state.mkdir(exist_ok=True)


def share(*words: str) -> int:
    command = sanduk_share.Command()
    return command.act(**vars(command.create_parser("sanduk", "share").parse_args(list(words))))


def key(*words: str) -> int:
    command = sanduk_key.Command()
    return command.act(**vars(command.create_parser("sanduk", "key").parse_args(list(words))))


@pytest.fixture
def anna():
    """Anna, whose account this process runs as."""
    person = somebody("anna")
    TerminalAccount.objects.create(account=audit.account(), user=person)
    return person


def listed(capsys, *words: str):
    capsys.readouterr()
    assert share("list", *words, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_an_assistant_is_given_granted_and_taken_back(capsys):
    somebody("anna")
    somebody("ben")
    make_assistant("daily")
    share("owner", "daily", "anna")
    share("give", "daily", "ben", "--tell")
    (found,) = listed(capsys)
    assert found == {
        "name": "daily",
        "owner": "anna",
        "key_of": None,
        "grants": [{"user": "ben", "tell": True, "wake": False}],
    }
    share("give", "daily", "ben", "--wake")  # replaces
    assert listed(capsys, "daily")[0]["grants"] == [{"user": "ben", "tell": False, "wake": True}]
    share("list")
    line = capsys.readouterr().out.splitlines()[1].split()
    assert line == ["daily", "anna", "ben", "wake", "-"]
    assert share("take", "daily", "ben", "--json") == 0
    assert json.loads(capsys.readouterr().out)["grants"] == []
    share("owner", "daily", "--nobody")
    assert listed(capsys)[0]["owner"] is None
    actions = AuditEvent.objects.order_by("number").values_list("action", "account")
    kinds = ["owner", "grant", "grant", "withdraw", "owner"]
    assert list(actions) == [(f"assistant.{each}", audit.account()) for each in kinds]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("give", "daily", "ben"), "nobody's, so everybody may"),
        (("take", "daily", "ben"), "was granted nothing"),
        (("owner", "daily", "nemo"), "no such person as 'nemo'"),
        (("owner", "daily"), "or --nobody"),
        (("owner", "daily", "ben", "--nobody"), "or --nobody"),
        (("give", "daily"), "an ASSISTANT and a PERSON"),
        (("owner", "dialy", "ben"), "did you mean daily"),
        (("take", "daily", "ben", "--tell"), "goes with give"),
        (("list", "daily", "ben"), "at most"),
    ],
)
def test_what_cannot_be_meant_changes_nothing(words, why):
    somebody("ben")
    make_assistant("daily")
    with pytest.raises(Refusal, match=why):
        share(*words)
    assert not Grant.objects.exists()
    assert not AuditEvent.objects.exists()


def test_a_grant_of_somebody_who_was_shut_out_can_be_taken():
    anna, ben = somebody("anna"), somebody("ben")
    assistant = make_assistant("daily")
    belonging.give_to(assistant, anna)
    belonging.grant(assistant, ben)
    ben.is_active = False
    ben.save()
    assert share("take", "daily", "ben") == 0
    assert not Grant.objects.exists()


def test_a_key_is_kept_lent_and_taken_back_by_whose_account_it_is(
    anna, tmp_path, monkeypatch, capsys
):
    assistant = assistant_in(tmp_path, provider="openai")
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{KEY}\n"))
    assert key("keep", "openai") == 0
    assert own_keys.kept(anna) == ["openai"]
    assert key("lend", assistant.name) == 0
    assistant.refresh_from_db()
    assert assistant.key_of == anna
    said = capsys.readouterr()
    assert KEY not in said.out + said.err
    assert key("list", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["user"], found["lent_to"]) == ("anna", [assistant.name])
    assert {"provider": "openai", "kept": True} in found["keys"]
    assert key("take", assistant.name) == 0
    assert key("forget", "openai") == 0
    assert key("forget", "openai") == 1
    assert credentials.stored() == {}
    assistant.refresh_from_db()
    assert assistant.key_of is None


def test_an_account_that_is_nobodys_keeps_and_lends_no_key(tmp_path):
    assistant = assistant_in(tmp_path, provider="openai")
    for words in (("list",), ("keep", "openai"), ("lend", assistant.name)):
        with pytest.raises(Refusal, match="sanduk user map"):
            key(*words)


def test_whoever_has_this_hosts_account_takes_any_key_back_and_a_mapped_stranger_does_not(
    tmp_path,
):
    assistant, ben = assistant_in(tmp_path, provider="openai"), somebody("ben")
    own_keys.keep(ben, "openai", KEY)
    type(assistant).objects.update(key_of=ben)
    mapped = TerminalAccount.objects.create(account=audit.account(), user=somebody("carl"))
    with pytest.raises(Refusal, match="not yours"):
        key("take", assistant.name)
    mapped.delete()
    assert key("take", assistant.name) == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("keep", "rehearsal"), "no provider 'rehearsal' that takes a key"),
        (("keep",), "needs a PROVIDER"),
        (("lend",), "needs an ASSISTANT"),
        (("list", "openai"), "takes no name"),
        (("forget", "openai", "--json"), "key list only"),
    ],
)
def test_what_is_no_key_is_refused_before_one_is_asked_for(anna, words, why):
    with pytest.raises(Refusal, match=why):
        key(*words)
