"""The first run: each step can be left and come back to, and ends with something to decide."""

from __future__ import annotations

import re
import stat
from dataclasses import replace

import pytest
from django.contrib.auth import get_user_model

from assistants.models import Assistant, Wakeup
from runs import credentials, four_eyes
from runs.condition import EngineCondition
from runs.models import AuditEvent
from sanduk_site import first_run, links, roles
from tests.site.pages import make_item

pytestmark = pytest.mark.django_db
CANARY = "sk-canary-0123456789abcdef"


@pytest.fixture
def engine(monkeypatch):
    """An engine whose answer a test chooses."""
    answer = {"is": EngineCondition("docker", is_default=True, version="28.0")}
    monkeypatch.setattr(first_run, "engine", lambda: answer["is"])
    return answer


@pytest.fixture
def root(client, settings, tmp_path, engine, monkeypatch):
    """An administrator who has just signed in, at an installation of their own."""
    settings.SANDUK_FOUR_EYES = None
    settings.SANDUK_HOME = tmp_path / "home"
    settings.SANDUK_HOME.mkdir(mode=0o700)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    user = get_user_model().objects.create_superuser("root", "", "correct horse 7")
    client.force_login(user)
    return user


def where(client) -> str:
    """The step it goes on with, or "" when all are done."""
    answer = client.get("/first-run")
    return answer.url.rpartition("/")[2] if answer.status_code == 302 else ""


def test_the_steps_follow_each_other_and_each_is_remembered(client, root):
    seen = []
    for given in (
        {"team": "one"}, {"provider": "rehearsal"}, {}, {"skip": "1"},
    ):  # fmt: skip
        step = where(client)
        seen.append(step)
        page = client.get(f"/first-run/{step}")
        assert page.status_code == 200
        assert b'aria-current="step"' in page.content
        assert client.post(f"/first-run/{step}", given).status_code == 302

    assert seen == ["team", "provider", "engine", "assistant"]
    assert where(client) == ""
    assert first_run.is_finished()
    assert b"rehearsal" in client.get("/first-run").content


@pytest.mark.parametrize("form", [{}, {"team": ""}, {"team": "two"}])
def test_a_form_that_says_nothing_of_a_team_is_no_word_for_one_person(client, root, form):
    assert client.post("/first-run/team", form).status_code == 409
    assert four_eyes.chosen() is None


def test_a_team_sets_four_eyes_and_no_page_switches_them_off(client, root):
    client.post("/first-run/team", {"team": "one"})
    assert four_eyes.is_on() is False
    client.post("/first-run/team", {"team": "team"})
    assert four_eyes.is_on() is True

    answer = client.post("/first-run/team", {"team": "one"})

    assert answer.status_code == 409
    assert b"sanduk user four-eyes off" in answer.content
    assert four_eyes.is_on() is True
    events = AuditEvent.objects.filter(action="site.four-eyes").order_by("number")
    assert [(e.actor, e.detail["on"]) for e in events] == [(root, False), (root, True)]


def test_a_team_invites_a_second_person_who_may_decide_and_sees_the_link_once(client, root):
    client.post("/first-run/team", {"team": "team"})
    assert where(client) == "second"

    page = client.post("/first-run/second", {"name": "bea"})

    assert page.status_code == 200
    link = re.search(r"http://testserver/setup/[\w-]+", page.content.decode())
    assert link
    assert where(client) == "provider"
    assert link[0].encode() not in client.get("/first-run/second").content
    (event,) = AuditEvent.objects.filter(action="user.add")
    assert (event.actor, event.subject) == (root, "user:bea")
    bea = get_user_model().objects.get(username="bea")
    assert roles.of(bea) == ["approver"]
    assert links.found(link[0].rpartition("/")[2]).user == bea
    assert client.post("/first-run/second", {"name": "bea"}).status_code == 409
    assert client.post("/first-run/second", {"name": " "}).status_code == 409


def test_one_person_is_not_asked_for_a_second_and_a_team_may_do_it_later(client, root):
    client.post("/first-run/team", {"team": "one"})
    assert where(client) == "provider"
    assert client.get("/first-run/second").status_code == 404

    client.post("/first-run/team", {"team": "team"})
    client.post("/first-run/second", {"skip": "1"})
    assert where(client) == "provider"
    first_run.remember(root, provider="rehearsal", engine="docker", assistant="none")
    end = client.get("/first-run").content.decode()
    assert "sanduk user add NAME approver" in end
    assert "/first-run/second" in end


def test_before_the_sample_is_made_it_is_said_who_will_decide(client, root):
    assert "waits in the outbox for you." in client.get("/first-run/assistant").content.decode()
    client.post("/first-run/team", {"team": "team"})
    page = client.get("/first-run/assistant").content.decode()
    assert "waits in the outbox for you" not in page
    assert "waits in the outbox, for somebody else" in page
    assert "Invite a second person" in page
    client.post("/first-run/second", {"name": "bea"})
    assert "<strong>bea</strong>" in client.get("/first-run/assistant").content.decode()


def test_what_the_sample_says_in_a_team_waits_for_the_second_person(client, root, takes_any_plan):
    client.post("/first-run/team", {"team": "team"})
    client.post("/first-run/second", {"name": "bea"})
    client.post("/first-run/assistant")
    item = make_item(Assistant.objects.get(), "# Hello", wakeup=Wakeup.objects.get())

    page = client.get("/first-run/assistant").content.decode()
    assert "it waits for somebody else" in page
    assert "<strong>bea</strong>" in page
    assert "Read it and decide" not in page

    client.force_login(get_user_model().objects.get(username="bea"))
    gate = client.get(f"/outbox/{item.pk}/").content.decode()
    assert 'value="approve"' in gate
    seen = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', gate))
    client.post(f"/outbox/{item.pk}/decide", {**seen, "verdict": "approve"})
    item.refresh_from_db()
    assert item.state == "approved"


def test_what_the_environment_pins_is_shown_and_not_asked(client, root, settings):
    settings.SANDUK_FOUR_EYES = True

    page = client.get("/first-run/team")

    assert b"SANDUK_FOUR_EYES" in page.content
    assert where(client) == "second"
    client.post("/first-run/team", {"team": "one"})
    assert four_eyes.is_on() is True


def test_a_key_is_kept_as_auth_set_does_and_shown_nowhere(client, root, settings):
    given = {"provider": "openai", "key": f" {CANARY}\n"}
    assert client.post("/first-run/provider", given).status_code == 302

    assert credentials.stored() == {"OPENAI_API_KEY": CANARY}
    file = settings.SANDUK_HOME / "credentials"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (event,) = AuditEvent.objects.filter(action="auth.set")
    assert (event.actor, event.subject) == (root, "secret:OPENAI_API_KEY")
    for page in ("/first-run/provider", "/first-run/engine", "/first-run"):
        assert CANARY.encode() not in client.get(page, follow=True).content
    assert CANARY not in repr(list(AuditEvent.objects.values())) + repr(first_run.state())


@pytest.mark.parametrize(
    "given",
    [
        {"provider": "openai", "key": ""},
        {"provider": "openai", "key": f"{CANARY} {CANARY}"},
        {"provider": "nobody", "key": CANARY},
        {"provider": "../x", "key": CANARY},
        {},
    ],
)
def test_what_is_no_key_or_no_provider_is_refused_and_not_sent_back(client, root, given):
    page = client.post("/first-run/provider", given)

    assert page.status_code == 409
    assert b'role="alert"' in page.content
    assert CANARY.encode() not in page.content
    assert credentials.stored() == {}
    client.post("/first-run/team", {"team": "one"})
    assert where(client) == "provider"


def test_an_engine_that_cannot_be_used_is_shown_with_what_helps_as_text(client, root, engine):
    trouble = "no docker here\x1b[31m<script>alert(1)</script>; apt-get install docker.io"
    engine["is"] = replace(engine["is"], trouble=trouble)

    page = client.get("/first-run/engine")
    assert b"apt-get install docker.io" in page.content
    assert b"<script>alert" not in page.content
    assert b"\x1b" not in page.content
    assert client.post("/first-run/engine").status_code == 409

    engine["is"] = replace(engine["is"], trouble="")
    assert client.post("/first-run/engine").status_code == 302
    assert first_run.state()["engine"] == "docker"


def test_one_may_go_on_without_an_engine(client, root, engine):
    engine["is"] = replace(engine["is"], trouble="none there")

    assert client.post("/first-run/engine", {"anyway": "1"}).status_code == 302


@pytest.fixture
def takes_any_plan(monkeypatch):
    """No engine is asked what it can: that is another test's."""
    monkeypatch.setattr("assistants.arriving.check_whole", lambda arrival: ())


def test_the_sample_is_made_once_woken_and_owned_by_who_asked(client, root, takes_any_plan):
    for _ in range(2):
        assert client.post("/first-run/assistant").status_code == 302

    (assistant,) = Assistant.objects.all()
    assert (assistant.name, assistant.config["provider"]) == ("sample", "rehearsal")
    assert str(first_run.sample_directory().resolve()) == assistant.directory
    (wakeup,) = Wakeup.objects.all()
    assert wakeup.state == Wakeup.State.WAITING
    assert AuditEvent.objects.get(action="assistant.add").actor == root
    (event,) = AuditEvent.objects.filter(action="first-run.sample")
    assert event.actor == root
    page = client.get("/first-run/assistant").content
    assert b'http-equiv="refresh"' in page
    assert b"No worker is up" in page


def test_how_the_samples_wakeup_ended_is_told_and_it_can_be_woken_again(
    client, root, takes_any_plan
):
    client.post("/first-run/assistant")
    Wakeup.objects.skip(Wakeup.objects.get().pk, Wakeup.Outcome.BROKEN, "no <b>image</b>\x1b[1m")

    page = client.get("/first-run/assistant")
    assert b"Wake it again" in page.content
    assert b"<b>image</b>" not in page.content
    assert b"\x1b" not in page.content

    client.post("/first-run/assistant")
    assert Wakeup.objects.filter(state=Wakeup.State.WAITING).count() == 1


def test_a_step_there_is_not_is_not_found(client, root):
    assert client.get("/first-run/nothing").status_code == 404


def test_home_leads_an_administrator_there_until_it_is_over(client, root):
    assert b"Finish the first run" in client.get("/").content

    client.post("/first-run/assistant", {"skip": "1"})

    assert b"Finish the first run" not in client.get("/").content
