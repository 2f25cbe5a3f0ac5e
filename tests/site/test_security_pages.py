"""What may be reached is said by who has the right: seen first, with the password, audited."""

from __future__ import annotations

import datetime as dt
import html
import os
import re

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from assistants.config import Config
from assistants.models import Assistant
from runs import clock
from runs.models import AuditEvent, EgressAttempt, Run
from tests.accounts import ORDINARY
from tests.factories import make_assistant, make_run, make_wakeup
from tests.site.pages import EVIL, somebody

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse 7 battery"


@pytest.fixture(autouse=True)
def place(tmp_path, settings):
    settings.SANDUK_HOME = tmp_path / "state"
    settings.SANDUK_HOME.mkdir(mode=0o700)
    settings.SANDUK_FOUR_EYES = None
    work = tmp_path / "daily"
    for each in (work, work / "workspace"):
        each.mkdir()
        if os.geteuid() == 0:
            os.chown(each, ORDINARY, ORDINARY)  # no agent runs as root
    (work / "brief.md").write_text("look around")
    return work


@pytest.fixture
def root(client):
    found = somebody("root", "administrator", password=PASSWORD)
    client.force_login(found)
    return found


@pytest.fixture
def daily(place):
    config = Config(agent="claude", provider="rehearsal")
    return make_assistant("daily", config=config, directory=str(place))


def refused(run: Run, flag: str = "--allow-host api.example:443", sequence: int = 1) -> None:
    EgressAttempt.objects.create(
        run=run, sequence=sequence, host="api.example", port=443, allowed=False, flag=flag,
        started_at=clock.now(),
    )  # fmt: skip


@pytest.fixture
def of_wakeup(daily):
    run = make_run(state="ended", outcome="succeeded")
    make_wakeup(daily, state="ended", run=run)
    refused(run)
    return run


@pytest.fixture
def by_hand(place):
    order = {"workdir": str(place), "agent": "claude", "provider": "rehearsal",
             "allow_hosts": ["first.example"]}  # fmt: skip
    run = make_run(state="ended", workspace=str(place), task="count", agent="claude",
                   provider="rehearsal", order=order)  # fmt: skip
    refused(run)
    return run


def seen_in(answer) -> str:
    return re.search(r'name="seen" value="(\w+)"', answer.content.decode())[1]


def said(answer) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


def hosts(assistant: Assistant) -> list[str]:
    return Assistant.objects.get(pk=assistant.pk).config["allow_hosts"]


def allow(client, run: Run, **fields: str):
    shown = client.get(reverse("run-allow", args=[run.uid, 1]))
    form = {"seen": seen_in(shown), **fields}
    return client.post(reverse("run-allow-now", args=[run.uid, 1]), form, follow=True)


def test_a_host_that_a_wakeup_was_refused_is_allowed_to_its_assistant(
    client, root, daily, of_wakeup
):
    assert "Allow this host" in client.get(reverse("run", args=[of_wakeup.uid])).content.decode()
    page = client.get(reverse("run-allow", args=[of_wakeup.uid, 1])).content.decode()
    assert "api.example:443" in page
    assert "What changes for daily" in page
    assert hosts(daily) == []

    answer = allow(client, of_wakeup)

    assert "daily may reach api.example:443" in said(answer)
    assert hosts(daily) == ["api.example:443"]
    event = AuditEvent.objects.get(action="assistant.security")
    assert (event.actor, event.detail["changed"]) == (
        root, {"allow_hosts": ["none", "api.example:443"]},
    )  # fmt: skip
    assert "was said on the web by root" in answer.content.decode()


def test_a_run_is_run_again_with_the_host_and_is_otherwise_as_it_was_ordered(client, root, by_hand):
    page = client.get(reverse("run-allow", args=[by_hand.uid, 1])).content.decode()
    assert "Run again with this host allowed" in page
    assert "first.example, api.example:443 are in reach" in page

    allow(client, by_hand, task="evil", workdir="/etc")

    new = Run.objects.exclude(pk=by_hand.pk).get()
    assert (new.task, new.workspace, new.mode) == ("count", by_hand.workspace, "sealed")
    assert new.order["allow_hosts"] == ["first.example", "api.example:443"]
    assert (new.state, new.requested_by) == ("queued", root)
    event = AuditEvent.objects.get(action="run.start")
    assert event.detail == {"again": by_hand.uid, "allowed": "api.example:443"}


@pytest.mark.parametrize("which", ["of_wakeup", "by_hand"])
@pytest.mark.parametrize("seen", ["", "0" * 64])
def test_nothing_is_allowed_that_was_not_seen(client, root, which, seen, request):
    run = request.getfixturevalue(which)
    answer = client.post(reverse("run-allow-now", args=[run.uid, 1]), {"seen": seen})

    assert answer.status_code == 409
    assert not AuditEvent.objects.filter(action__in=["assistant.security", "run.start"]).exists()
    assert Run.objects.count() == 1


def test_what_changed_since_it_was_seen_is_looked_at_again(client, root, daily, of_wakeup):
    shown = client.get(reverse("run-allow", args=[of_wakeup.uid, 1]))
    daily.config["allow_hosts"] = ["other.example"]
    daily.save()

    form = {"seen": seen_in(shown)}
    answer = client.post(reverse("run-allow-now", args=[of_wakeup.uid, 1]), form)

    assert answer.status_code == 409
    assert hosts(daily) == ["other.example"]


@pytest.mark.parametrize(
    "flag",
    ["", "--allow-host *.example:443", "--allow-host 10.0.0.1:443", "--allow-host a/b:443",
     "--mount /etc:/etc", "--allow-host a.example:443 --mount /:/x", EVIL],
)  # fmt: skip
def test_only_an_exact_host_that_a_flag_would_allow_can_be_allowed(client, root, daily, flag):
    run = make_run(state="ended")
    make_wakeup(daily, state="ended", run=run)
    refused(run, flag)

    assert "Allow this host" not in client.get(reverse("run", args=[run.uid])).content.decode()
    assert client.get(reverse("run-allow", args=[run.uid, 1])).status_code == 404
    answer = client.post(reverse("run-allow-now", args=[run.uid, 1]), {"seen": "0" * 64})
    assert answer.status_code == 404
    assert hosts(daily) == []


def test_an_attempt_that_passed_or_is_another_runs_is_not_there(client, root, daily, of_wakeup):
    assert client.get(reverse("run-allow", args=[of_wakeup.uid, 2])).status_code == 404
    EgressAttempt.objects.update(allowed=True)
    assert client.get(reverse("run-allow", args=[of_wakeup.uid, 1])).status_code == 404


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_who_has_not_the_right_is_offered_nothing_and_can_do_nothing(
    client, daily, of_wakeup, role
):
    client.force_login(somebody(role, role))

    page = client.get(reverse("run", args=[of_wakeup.uid])).content.decode()
    assert "api.example:443" in page
    assert "Allow this host" not in page
    assert (
        "Change some of it" not in client.get(reverse("assistant", args=["daily"])).content.decode()
    )
    for name, words in (
        ("run-allow-now", [of_wakeup.uid, 1]),
        ("assistant-security-say", ["daily"]),
    ):
        assert client.post(reverse(name, args=words), {"seen": "0" * 64}).status_code == 403


FORM = {"mode": "sealed", "allow_hosts": "", "approvals": "1", "memory_review": "1"}


def say(client, **fields: str):
    return client.post(reverse("assistant-security-say", args=["daily"]), {**FORM, **fields})


def hidden(answer) -> dict[str, str]:
    found = re.findall(r'type="hidden" name="(seen|would)" value="(\w*)"', answer.content.decode())
    return dict(found)


def test_a_change_of_security_is_shown_first_and_then_made(client, root, daily):
    fields = {"allow_hosts": "Api.example\r\nother.example:8443\r\n", "approvals": "2"}
    shown = say(client, **fields)

    assert shown.status_code == 200
    page = shown.content.decode()
    assert "What would change" in page
    assert "api.example:443, other.example:8443" in page
    assert hosts(daily) == []

    answer = say(client, **fields, **hidden(shown), do="1")

    assert answer.status_code == 302
    assert hosts(daily) == ["api.example:443", "other.example:8443"]
    event = AuditEvent.objects.get(action="assistant.security")
    assert event.actor == root
    assert event.detail["changed"]["approvals"] == ["1", "2"]


def test_what_was_typed_after_it_was_shown_is_shown_again_and_not_done(client, root, daily):
    shown = say(client, approvals="2")

    answer = say(client, approvals="3", **hidden(shown), do="1")

    assert answer.status_code == 409
    assert "not what the last page showed" in said(answer)
    assert 'value="3"' in answer.content.decode()
    assert not AuditEvent.objects.filter(action="assistant.security").exists()


def test_what_somebody_changed_between_is_not_overwritten(client, root, daily):
    shown = say(client, approvals="2")
    daily.config["model"] = "other"
    daily.save()

    answer = say(client, approvals="2", **hidden(shown), do="1")
    assert answer.status_code == 409
    assert Assistant.objects.get().config["approvals"] == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"allow_hosts": "*.example"},
        {"allow_hosts": EVIL},
        {"mode": "open"},
        {"mode": "key-safe", "allow_hosts": "a.example"},
        {"approvals": "0"},
        {"approvals": "²"},
        {"gate": "rm", "mounts": "/:/x", "args": "--mode=open", "recipe": "/x", "brief": "/x"},
    ],
)
def test_what_the_web_may_not_say_is_refused_and_what_was_typed_stays(client, root, daily, fields):
    before = Assistant.objects.get().config
    answer = say(client, **fields)

    assert answer.status_code == 409
    if "allow_hosts" in fields:
        assert html.escape(fields["allow_hosts"][:9]) in answer.content.decode()
    assert Assistant.objects.get().config == before


def test_the_password_is_asked_first_and_what_was_typed_goes_on(client, root, daily, monkeypatch):
    at = clock.now() + dt.timedelta(minutes=11)
    shown = hidden(say(client, approvals="2"))
    monkeypatch.setattr("runs.clock.now", lambda: at)

    asked = say(client, approvals="2", **shown, do="1")
    assert asked.status_code == 403
    assert "Your password, please" in asked.content.decode()
    assert Assistant.objects.get().config["approvals"] == 1

    given = {"sudo_go_on": "post", "sudo_password": PASSWORD}
    assert say(client, approvals="2", **shown, do="1", **given).status_code == 302
    assert Assistant.objects.get().config["approvals"] == 2


def test_allowing_a_host_asks_for_the_password_too(client, root, daily, of_wakeup, monkeypatch):
    at = clock.now() + dt.timedelta(minutes=11)
    monkeypatch.setattr("runs.clock.now", lambda: at)

    assert "Your password, please" in allow(client, of_wakeup).content.decode()
    assert hosts(daily) == []


def test_one_that_belongs_to_somebody_is_theirs_and_the_administrators(client, root, daily):
    olga, otto = somebody("olga", "viewer"), somebody("otto", "viewer")
    for each in (olga, otto):
        each.user_permissions.add(Permission.objects.get(codename="change_assistant_security"))
    daily.owner = olga
    daily.save()
    daily.grants.create(user=otto, may_wake=True)

    for who, code in ((root, 200), (olga, 200), (otto, 404)):
        client.force_login(who)
        assert client.get(reverse("assistant-security", args=["daily"])).status_code == code
        assert say(client, approvals="2").status_code == code
