"""Rows of a site under test: these functions run in a process of their own, beside the site."""

from __future__ import annotations

import datetime as dt

from django.contrib.auth import get_user_model
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client

from assistants import asked, destinations, outbox
from assistants.config import Config
from assistants.delivery.kinds import FileSettings
from assistants.models import Assistant, OutboxItem
from runs import audit, clock
from runs import four_eyes as people
from runs.models import Decision, RelayCall, Run, RunEvent
from sanduk_site import links, roles
from sanduk_site.sessions import FRESH_KEY
from tests.browser import changes_scene, refused_scene, scene, story
from tests.browser.going import PASSWORD
from tests.factories import make_assistant, make_run, make_wakeup

number = 0
scene_of, story_of = scene.show, story.tell
changes_of, change_state_of = changes_scene.show, changes_scene.state_of
revise_change = changes_scene.revise
refused_of_assistant, refused_by_hand = refused_scene.of_assistant, refused_scene.by_hand
hosts_of, allow_another = refused_scene.hosts_of, refused_scene.allow_another
order_of = refused_scene.order_of


def person(name: str, *given: str) -> None:
    """Somebody with these roles and the password of everybody here."""
    user = get_user_model().objects.create_user(name, password=PASSWORD)
    roles.give(user, given)


def session_of(name: str) -> str:
    """The key of a session that this person has just begun."""
    client = Client()
    client.force_login(get_user_model().objects.get(username=name))
    key: str = client.cookies["sanduk_session"].value
    return key


def end_sessions_of(name: str) -> None:
    get_user_model().objects.get(username=name).login_sessions.update(ended_at=clock.now())


def assistant(name: str = "") -> str:
    made: str = make_assistant(name).name
    return made


def item(body: str, assistant: str = "scout", author: str = "", approvals: int = 1) -> int:
    """Something an assistant's wakeup wants to say; `author` is who asked for the wakeup."""
    found = Assistant.objects.filter(name=assistant).first() or make_assistant(assistant)
    run = make_run(state="ended", report=body, report_state="saved", task="look around")
    wakeup = make_wakeup(found, state="ended", run=run, asked_by=author)
    if author:
        actor = get_user_model().objects.get(username=author)
        audit.record(asked.ACTION, asked.subject_of(wakeup), actor=actor)
    made = outbox.write(wakeup, body, Config(hold=True, approvals=approvals))
    return int(made.pk)


def oldest_item(body: str) -> int:
    """One that stands before all others on Home, which lists the oldest only."""
    pk = item(body)
    OutboxItem.objects.filter(pk=pk).update(created_at=clock.now() - dt.timedelta(days=60))
    return pk


def state_of(item: int) -> list[str]:
    """Of an item: its state, who decided, and why."""
    return list(OutboxItem.objects.values_list("state", "decided_by", "reason").get(pk=item))


def run(lines: int = 0, state: str = "ended") -> str:
    """A run with some lines in its trace."""
    made = make_run(state=state)
    now = clock.now()
    RunEvent.objects.bulk_create(
        [
            RunEvent(run=made, sequence=at, kind="text", at=now, text=f"line {at}")
            for at in range(1, lines + 1)
        ],
        batch_size=5000,
    )
    return str(made.uid)


def begin_run(uid: str) -> None:
    """A queued run is claimed and started, and its agent makes a first call."""
    now = clock.now()
    made = Run.objects.get(uid=uid)
    RelayCall.objects.create(
        run=made, sequence=1, method="POST", path="/v1/responses", protocol="openai", status=200,
        model_asked="a-model", started_at=now, ended_at=now, input_tokens=400, output_tokens=44,
    )  # fmt: skip
    Run.objects.filter(uid=uid).update(
        state="running", claimed_at=now, started_at=now, first_call_at=now, calls_relayed=1,
        lease_owner="me", lease_until=now,
    )  # fmt: skip


def end_run(uid: str, outcome: str = "succeeded") -> None:
    Run.objects.filter(uid=uid).update(
        state="ended", outcome=outcome, ended_at=clock.now(), lease_owner="", lease_until=None
    )


def outcome_of(uid: str) -> str:
    return str(Run.objects.get(uid=uid).outcome)


def send_to_file(assistant: str, path: str) -> None:
    """Let what this assistant says go to a file."""
    settings = FileSettings(path=path)
    destinations.add("letters", "file", settings, timeout_s=10, assistants=[assistant])


def link_for(name: str) -> str:
    """The token of a link that sets this person's password."""
    return links.new(get_user_model().objects.get(username=name))


def run_of(item: int) -> str:
    return str(OutboxItem.objects.get(pk=item).wakeup.run.uid)


def say_more(uid: str, text: str) -> None:
    """One more line in a run's trace."""
    run = Run.objects.get(uid=uid)
    last = run.events.order_by("-sequence").values_list("sequence", flat=True).first() or 0
    RunEvent.objects.create(run=run, sequence=last + 1, kind="text", at=clock.now(), text=text)


def four_eyes(is_on: bool) -> None:
    people.choose(is_on)


def decisions_on(item: int) -> list[str]:
    """Who has decided on it, in order."""
    found = Decision.objects.filter(subject=f"outbox:{item}").order_by("pk")
    return list(found.values_list("actor__username", flat=True))


def is_at_rest(assistant: str) -> bool:
    """Whether every wakeup of it has ended."""
    found = Assistant.objects.get(name=assistant)
    return not found.wakeups.exclude(state="ended").exists()


def grow_stale(key: str) -> None:
    """Let the password of a session have been given long ago."""
    session = SessionStore(key)
    session[FRESH_KEY] = 0.0
    session.save()
