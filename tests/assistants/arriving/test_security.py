"""What may be said on the web of what an assistant reaches, and what its file says then."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from assistants import arriving, security
from assistants.models import Assistant
from runs.models import AuditEvent
from runs.refusal import Refusal

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna():
    return User.objects.create_superuser("anna")


def said(assistant: Assistant, actor, **words) -> list[security.Difference]:
    assistant.refresh_from_db()
    return security.change(assistant, words, seen=security.digest(assistant), actor=actor)


@pytest.fixture
def daily(directory):
    return arriving.add(directory()).assistant


def config(assistant: Assistant) -> dict:
    return Assistant.objects.get(pk=assistant.pk).config


def test_a_host_is_allowed_in_its_one_spelling_and_written_down_with_who_said_so(daily, anna):
    (change,) = said(daily, anna, allow_hosts=("API.Example.",))

    assert (change.name, change.before, change.after) == (
        "allow_hosts", "none", "api.example:443",
    )  # fmt: skip
    assert config(daily)["allow_hosts"] == ["api.example:443"]
    event = AuditEvent.objects.get(action="assistant.security")
    assert (event.actor, event.subject) == (anna, "assistant:daily")
    assert event.detail == {"changed": {"allow_hosts": ["none", "api.example:443"]}}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"allow_hosts": ("*.example",)}, "no wildcards"),
        ({"allow_hosts": ("https://x.example/",)}, "not a URL"),
        ({"allow_hosts": ("127.0.0.1",)}, "private addresses"),
        ({"allow_hosts": ("169.254.169.254:80",)}, "private addresses"),
        ({"allow_hosts": ("x.example\nHost: y",)}, "give HOST"),
        ({"allow_hosts": tuple(f"h{n}.example" for n in range(101))}, "at most 100"),
        ({"mode": "open"}, "on this host alone"),
        ({"mode": "no-network"}, "on this host alone"),
        ({"hold": False}, "on this host alone"),
        ({"mode": "key-safe", "allow_hosts": ("x.example",)}, "open a door in a sealed run"),
        ({"approvals": 0}, "1 to 20"),
        ({"approvals": 21}, "1 to 20"),
        ({"gate": "run-me"}, "gate: said on this host alone"),
        ({"mounts": ("/etc:/etc",)}, "mounts: said on this host alone"),
        ({"args": ("--mode=open",)}, "args: said on this host alone"),
        ({"recipe": "/tmp/x.toml"}, "recipe: said on this host alone"),
        ({"mode": "sealed"}, "what it has already"),
    ],
)
def test_what_the_web_may_not_say_is_refused_and_changes_nothing(daily, anna, words, why):
    before = config(daily)
    with pytest.raises(Refusal, match=why):
        said(daily, anna, **words)
    assert config(daily) == before
    assert not AuditEvent.objects.filter(action="assistant.security").exists()


def test_what_somebody_else_changed_meanwhile_is_looked_at_again(daily, anna):
    seen = security.digest(daily)
    said(daily, anna, approvals=2)
    with pytest.raises(Refusal, match="changed meanwhile"):
        security.change(daily, {"memory_review": False}, seen=seen, actor=anna)


def test_only_its_owner_or_who_sees_every_one_may_say_it(daily, anna):
    owner, other = User.objects.create(username="olga"), User.objects.create(username="otto")
    Assistant.objects.filter(pk=daily.pk).update(owner=owner)

    with pytest.raises(Refusal, match="only the owner of daily"):
        said(daily, other, approvals=2)
    said(daily, owner, approvals=2)
    said(daily, anna, approvals=3)
    assert config(daily)["approvals"] == 3


def test_adding_a_file_that_says_otherwise_again_asks_which_counts(directory, daily, anna):
    said(daily, anna, allow_hosts=("x.example",), approvals=2)

    with pytest.raises(Refusal) as refused:
        arriving.add(directory())

    for part in ("allow_hosts is x.example:443 as anna said on the web, and none in the file",
                 "approvals is 2", "--security web", "--security file"):  # fmt: skip
        assert part in str(refused.value)
    assert config(daily)["allow_hosts"] == ["x.example:443"]


def test_the_webs_word_is_kept_beside_what_else_the_file_says(directory, daily, anna):
    said(daily, anna, allow_hosts=("x.example",))
    place = directory("daily", 'timeout = "2m"')

    added = arriving.add(place, security="web")

    assert added.changed == ("timeout",)
    assert config(daily)["allow_hosts"] == ["x.example:443"]
    assert any("allow_hosts was said on the web by anna" in note for note in added.notes)
    with pytest.raises(Refusal, match="say which counts"):
        arriving.add(place)  # the file still says otherwise


def test_the_files_word_undoes_the_webs_and_the_audit_says_so(directory, daily, anna):
    said(daily, anna, allow_hosts=("x.example",))

    added = arriving.add(directory(), security="file")

    assert added.changed == ("allow_hosts",)
    assert config(daily)["allow_hosts"] == []
    daily.refresh_from_db()
    assert daily.set_on_web == {}
    event = AuditEvent.objects.get(action="assistant.change")
    assert event.detail == {"changed": ["allow_hosts"], "security": "file"}
    assert arriving.add(directory()).changed == ()


def test_a_file_that_says_what_the_web_said_settles_it(directory, daily, anna):
    said(daily, anna, allow_hosts=("x.example",))

    arriving.add(directory("daily", 'allow_hosts = ["X.example"]'))

    daily.refresh_from_db()
    assert daily.set_on_web == {}


def test_what_is_exported_holds_the_webs_word_and_is_taken_in_as_it_is(directory, daily, anna):
    said(daily, anna, allow_hosts=("x.example",), approvals=2)
    daily.refresh_from_db()

    place = directory("daily", toml=arriving.exported(daily))

    assert arriving.add(place).changed == ()
    assert config(daily)["approvals"] == 2


def test_the_webs_word_that_the_rest_of_the_file_forbids_is_refused(directory, daily, anna):
    said(daily, anna, allow_hosts=("x.example",))
    place = directory("daily", 'mode = "key-safe"')

    with pytest.raises(Refusal, match="open a door in a sealed run"):
        arriving.add(place, security="web")
    assert config(daily)["mode"] == "sealed"


def test_the_terminal_tells_what_was_said_on_the_web_and_takes_the_flag(
    directory, daily, anna, sanduk
):
    said(daily, anna, approvals=2)

    sanduk("assistant", "show", "daily")
    assert "approvals was said on the web by anna" in sanduk.err
    assert sanduk("assistant", "show", "daily", "--json")["set_on_web"]["approvals"]["by"] == "anna"
    out = sanduk("assistant", "add", str(directory()), "--security", "file")
    assert "daily is changed: approvals" in out
    with pytest.raises(Refusal, match="means nothing with show"):
        sanduk("assistant", "show", "daily", "--security", "file")
