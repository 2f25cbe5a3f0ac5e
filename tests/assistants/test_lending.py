"""A person's own key: kept, never shown, used by an assistant it is lent to and by nothing else."""

from __future__ import annotations

import io
from unittest import mock

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.urls import reverse

from assistants import belonging, lending
from relay import Ledger
from runs import credentials, keys, own_keys, secret_scan
from runs.console import Silent
from runs.models import AuditEvent
from runs.order import Order
from runs.plan import make_plan
from runs.refusal import Refusal
from runs.starting import Starting
from sanduk_site import people
from tests.assistants.waking import assistant_in, memory, runs, woken
from tests.runs.conftest import state
from tests.site.pages import somebody

__all__ = ["memory", "runs", "state"]
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("memory", "runs", "no_keys", "groups"),
]
KEY, ANOTHER = "sk-annas-own-0123456789abcdef", "sk-of-all-of-us-0123456789ab"


@pytest.fixture
def groups():
    from sanduk_site import roles

    roles.make_groups()


@pytest.fixture
def no_keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_API_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def anna():
    return somebody("anna", "operator")


@pytest.fixture
def ben():
    return somebody("ben", "operator", "approver")


@pytest.fixture
def own(anna, tmp_path):
    """Anna's assistant, with the openai key that she keeps."""
    own_keys.keep(anna, "openai", f" {KEY}\n")
    assistant = assistant_in(tmp_path, provider="openai")
    belonging.give_to(assistant, anna)
    return assistant


def name_of(user) -> str:
    return f"PERSON_{user.pk}_OPENAI_API_KEY"


def test_it_is_kept_for_its_owner_alone_and_the_audit_does_not_hold_it(anna, ben, own):
    assert credentials.stored() == {name_of(anna): KEY}
    assert own_keys.kept(anna) == ["openai"]
    assert own_keys.kept(ben) == []
    event = AuditEvent.objects.get(action="key.keep")
    assert (event.actor, event.detail) == (anna, {"provider": "openai"})
    assert not own_keys.forget(ben, "openai")
    assert own_keys.forget(anna, "openai")
    assert credentials.stored() == {}


def test_no_variable_flag_or_command_leads_to_it(anna, own, tmp_path):
    name = name_of(anna)
    assert (keys.value_of(name), keys.source_of(name)) == ("", "")
    assert keys.value_of("OPENAI_API_KEY") == ""
    said = io.StringIO()
    call_command("sanduk_auth", "status", stdout=said)
    assert "PERSON" not in said.getvalue()
    assert KEY[-4:] not in said.getvalue()
    with pytest.raises(SystemExit):
        call_command("sanduk_auth", "set", name)
    order = Order(
        task="x", workdir=str(tmp_path / "w"), agent="pi", provider="openai", runtime="docker",
        upstream="https://evil.example", upstream_key_env=name,
    )  # fmt: skip
    with pytest.raises(Refusal, match="empty or not set"):
        keys.provider_key(make_plan(order).provider)


def test_what_leaves_is_searched_for_it_too(anna, own):
    assert KEY in keys.held_keys()
    held, _ = secret_scan.held_secrets()
    assert KEY in held.values()
    assert secret_scan.scan_for(f"it is {KEY}".encode(), held)


@pytest.mark.parametrize("value", ["", "two words", "line\nbreak", "é", "x" * 20_000])
def test_what_is_no_key_is_refused_and_not_repeated(anna, value):
    with pytest.raises(Refusal) as refused:
        own_keys.keep(anna, "openai", value)
    assert not value or value not in str(refused.value)
    with pytest.raises(Refusal, match="no such provider"):
        own_keys.keep(anna, "rehearsal", KEY)
    assert credentials.stored() == {}


def test_a_wakeup_uses_the_key_that_was_lent_for_it_and_no_other(anna, own, runs):
    credentials.store("OPENAI_API_KEY", ANOTHER)
    woken(own)
    lending.lend(own, actor=anna)
    woken(own)
    lending.take_back(own, actor=anna)
    woken(own)
    assert [run.order["key_of"] for run in runs.seen] == [0, anna.pk, 0]


@pytest.mark.anyio
@pytest.mark.parametrize(("person", "used"), [(7, KEY), (0, ANOTHER)])
async def test_the_relay_is_given_exactly_that_key(state, tmp_path, monkeypatch, person, used):
    credentials.store("PERSON_7_OPENAI_API_KEY", KEY)
    credentials.store("OPENAI_API_KEY", ANOTHER)
    plan = make_plan(
        Order(task="x", workdir=str(tmp_path / "w"), agent="pi", provider="openai",
              runtime="docker", key_of=person, skip_key_check=True)
    )  # fmt: skip
    starting = Starting(plan, mock.Mock(), Ledger(), Silent(), print, mock.Mock())
    made = mock.AsyncMock(return_value="made")
    monkeypatch.setattr(starting, "_made", made)
    await starting.container()
    made.assert_awaited_once_with(used)


@pytest.mark.parametrize(
    "fields",
    [{"mode": "open"}, {"upstream": "https://evil.example"}, {"shell": "tty"}],
)
def test_it_goes_nowhere_but_through_the_relay_to_its_own_provider(anna, tmp_path, fields):
    order = Order(task="x", workdir=str(tmp_path / "w"), agent="pi", provider="openai",
                  runtime="docker", key_of=anna.pk, **fields)  # fmt: skip
    with pytest.raises(Refusal, match="a key that a person lends"):
        make_plan(order)


@pytest.mark.parametrize("given", [{"mode": "open"}, {"args": ("--upstream=https://evil.example",)},
                                   {"args": ("--provider=openrouter",)}])  # fmt: skip
def test_an_assistant_that_would_carry_it_off_is_not_woken_with_it(anna, tmp_path, runs, given):
    own_keys.keep(anna, "openai", KEY)
    own_keys.keep(anna, "openrouter", KEY)
    assistant = assistant_in(tmp_path, **{"provider": "openai", **given})
    lending.lend(assistant, actor=anna)
    assert woken(assistant).outcome == "broken"
    assert not runs.seen


def test_it_is_lent_by_its_owner_alone_for_what_they_may_see(anna, ben, own):
    with pytest.raises(Refusal, match="belongs to anna"):
        lending.lend(own, actor=ben)
    belonging.grant(own, ben, actor=anna)
    with pytest.raises(Refusal, match="you keep no key for openai"):
        lending.lend(own, actor=ben)
    root = somebody("root", "administrator")
    with pytest.raises(Refusal, match="you keep no key"):
        lending.lend(own, actor=root)
    lending.lend(own, actor=anna)
    own_keys.keep(ben, "openai", ANOTHER)
    with pytest.raises(Refusal, match="already"):
        lending.lend(own, actor=ben)
    with pytest.raises(Refusal, match="not yours"):
        lending.take_back(own, actor=ben)
    lending.take_back(own, actor=root)
    with pytest.raises(Refusal, match="nobody lends"):
        lending.take_back(own, actor=anna)


def test_whoever_it_is_shared_with_lends_theirs_until_that_is_withdrawn(anna, ben, own, runs):
    own_keys.keep(ben, "openai", ANOTHER)
    belonging.grant(own, ben, actor=anna)
    lending.lend(own, actor=ben)
    woken(own)
    assert runs.seen[-1].order["key_of"] == ben.pk
    belonging.withdraw(own, ben, actor=anna)
    ended = woken(own)
    assert ended.outcome == "broken"
    assert "ben lent it their key" in ended.reason
    assert len(runs.seen) == 1


def test_a_key_of_somebody_who_was_shut_out_is_used_no_more(anna, own, runs):
    somebody("root", "administrator", is_superuser=True)
    lending.lend(own, actor=anna)
    people.shut_out(anna)
    own.refresh_from_db()
    assert woken(own).outcome == "broken"
    assert not runs.seen


def test_a_key_that_was_forgotten_meanwhile_is_missed_in_words(anna, own):
    provider = own_keys.keyed()["openai"]
    own_keys.forget(anna, "openai")
    with pytest.raises(Refusal, match="keeps none for it any more"):
        keys.persons_key(provider, anna.pk)


def test_no_page_ever_shows_it_to_its_owner_or_to_others(client, anna, own):
    lending.lend(own, actor=anna)
    root = get_user_model().objects.create_superuser("su")
    for user in (anna, root):
        client.force_login(user)
        for place in (reverse("own-keys"), reverse("assistant", args=[own.name]), "/system/"):
            text = client.get(place).content.decode()
            assert KEY not in text
            assert KEY[-4:] not in text
    client.force_login(anna)
    assert "<strong>openai</strong> kept" in client.get(reverse("own-keys")).content.decode()


def test_it_is_kept_lent_and_forgotten_on_the_pages(client, anna, tmp_path):
    assistant = assistant_in(tmp_path, provider="openai")
    client.force_login(anna)
    client.get("/sessions")
    place, share = reverse("own-key"), reverse("assistant-share", args=[assistant.name])
    answer = client.post(place, {"provider": "openai", "key": "two words"}, follow=True)
    assert "two words" not in answer.content.decode()
    client.post(place, {"provider": "openai", "key": KEY})
    assert credentials.stored() == {name_of(anna): KEY}
    client.post(share, {"what": "lend"})
    assistant.refresh_from_db()
    assert assistant.key_of == anna
    assert assistant.name in client.get(reverse("own-keys")).content.decode()
    client.post(share, {"what": "unlend"})
    assistant.refresh_from_db()
    assert assistant.key_of is None
    client.post(place, {"provider": "openai", "what": "forget"})
    assert credentials.stored() == {}
