"""An assistant that is somebody's: who sees it and all that is of it, and who may do what."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from django.urls import reverse

from assistants import arriving, belonging, destinations, mailbox, memory, outbox, ticking
from assistants.models import Assistant, Delivery, Destination, InboxMessage, MemorySnapshot
from runs import clock
from runs.models import AuditEvent, Decision, RelayCall, RunEvent
from runs.refusal import Refusal
from runs.verdicts import Person
from tests.factories import make_assistant, make_run, make_schedule, make_wakeup
from tests.site.pages import make_item, somebody

pytestmark = pytest.mark.django_db
NAME = "annas-own"
PASSWORD = "correct horse 7 battery"


@pytest.fixture(autouse=True)
def state_directory(tmp_path, settings):
    settings.SANDUK_HOME = tmp_path / "home"
    settings.SANDUK_HOME.mkdir(mode=0o700)


@pytest.fixture
def anna():
    return somebody("anna", "operator", "approver")


@pytest.fixture
def ben():
    return somebody("ben", "operator", "approver")


@pytest.fixture
def own(anna) -> Assistant:
    """Anna's, with something of it on every page."""
    now = clock.now()
    assistant = make_assistant(NAME, owner=anna)
    make_schedule(assistant, next_at=now)
    run = make_run(state="ended", report="said", report_state="saved", outcome="interrupted")
    wakeup = make_wakeup(assistant, state="ended", run=run)
    make_item(assistant, f"words of {NAME}", run=run, wakeup=wakeup)
    sent = make_item(assistant, f"more of {NAME}", state="approved", decided_at=now)
    place = Destination.objects.create(name="mail", kind="file", config={"path": "/srv/out"})
    Delivery.objects.create(item=sent, destination=place, state="unknown", ended_at=now)
    live = make_run(state="running", started_at=now)
    make_wakeup(assistant, state="running", run=live)
    for each in (run, live):
        RunEvent.objects.create(run=each, sequence=1, at=now, kind="text", text=f"hi from {NAME}")
        RelayCall.objects.create(
            run=each, sequence=1, method="POST", path=f"/{NAME}", started_at=now,
            model_asked=NAME, protocol="openai",
        )  # fmt: skip
    MemorySnapshot.objects.create(
        assistant=assistant, wakeup=wakeup, moment="after", digest="0" * 64, review="waiting"
    )
    return assistant


def pages_of(assistant: Assistant) -> list[str]:
    """What there is of it alone."""
    uids = [w.run.uid for w in assistant.wakeups.exclude(run=None)]
    item = assistant.outbox.first()
    return [
        reverse("assistant", args=[assistant.name]),
        *(reverse("run", args=[uid]) for uid in uids),
        *(reverse("run-report", args=[uid]) for uid in uids),
        reverse("outbox-item", args=[item.pk]),
        reverse("outbox-body", args=[item.pk]),
        reverse("memory", args=[assistant.snapshots.get().pk]),
    ]


LISTS = ["/", "/assistants/", "/outbox/?show=all", "/spend/?by=assistant", "/admin/runs/run/",
         "/admin/runs/runevent/", "/admin/runs/relaycall/"]  # fmt: skip


def statuses(client, assistant: Assistant) -> set[int]:
    return {client.get(place).status_code for place in pages_of(assistant)}


def named_on(client) -> set[str]:
    return {place for place in LISTS if NAME in client.get(place).content.decode()}


def test_the_owner_and_administrators_see_it_on_every_page(client, anna, own):
    for user in (anna, somebody("root", "administrator"), somebody("su", is_superuser=True)):
        client.force_login(user)
        assert statuses(client, own) == {200}
        assert named_on(client) == set(LISTS)


def test_others_find_it_and_all_that_is_of_it_nowhere(client, ben, own):
    client.force_login(ben)
    assert statuses(client, own) == {404}
    assert named_on(client) == set()
    assert client.get(reverse("waiting")).json() == {"waiting": 0}
    for run in own.wakeups.exclude(run=None):
        assert client.get(reverse("run-events", args=[run.run.uid])).status_code == 404
        assert client.post(reverse("run-stop", args=[run.run.uid])).status_code == 404
    for name in ("tell", "wake", "switch", "share"):
        answer = client.post(reverse(f"assistant-{name}", args=[NAME]), {"text": "x"})
        assert answer.status_code == 404, name
    item = own.outbox.first()
    assert client.post(reverse("outbox-decide", args=[item.pk])).status_code == 404
    assert client.post(reverse("memory-review", args=[own.snapshots.get().pk])).status_code == 404


def test_what_is_nobodys_everybody_sees(client, ben):
    make_assistant("common")
    client.force_login(ben)
    assert "common" in client.get("/assistants/").content.decode()
    run = make_run(state="ended")
    assert client.get(reverse("run", args=[run.uid])).status_code == 200


def test_who_was_granted_it_sees_it_and_does_no_more_than_that(client, anna, ben, own):
    belonging.grant(own, ben, actor=anna)
    client.force_login(ben)
    assert statuses(client, own) == {200}
    assert named_on(client) == set(LISTS)
    page = client.get(reverse("assistant", args=[NAME])).content.decode()
    assert reverse("assistant-tell", args=[NAME]) not in page
    assert reverse("assistant-wake", args=[NAME]) not in page
    client.post(reverse("assistant-tell", args=[NAME]), {"text": "psst"})
    assert not InboxMessage.objects.exists()
    belonging.grant(own, ben, tell=True, actor=anna)
    client.post(reverse("assistant-tell", args=[NAME]), {"text": "psst"})
    assert InboxMessage.objects.get().author == ben
    belonging.withdraw(own, ben, actor=anna)
    assert statuses(client, own) == {404}


def test_the_rules_hold_where_things_are_done_and_not_on_the_pages_alone(anna, ben, own):
    item, snapshot = own.outbox.get(state="pending"), own.snapshots.get()
    sent = own.outbox.get(state="approved")
    message, _ = mailbox.tell(own, "look", author=anna)
    acts = {
        "tell": lambda: mailbox.tell(own, "x", author=ben),
        "untell": lambda: mailbox.take_back(message.pk, actor=ben),
        "wake": lambda: ticking.wake_by_hand(own, asked_by="ben", actor=ben),
        "disable": lambda: arriving.disable(own, "x", actor=ben),
        "enable": lambda: arriving.enable(own, actor=ben),
        "decide": lambda: outbox.decide(
            item.pk, Decision.Verdict.APPROVE, Person(user=ben, via="web")
        ),
        "deliver": lambda: destinations.again(sent, actor=ben),
        "arrived": lambda: destinations.arrived(sent, actor=ben),
        "accept": lambda: memory.accept(own, snapshot, actor=ben),
        "restore": lambda: memory.restore(own, snapshot, actor=ben),
        "give": lambda: belonging.give_to(own, ben, actor=ben),
        "grant": lambda: belonging.grant(own, ben, tell=True, actor=ben),
        "withdraw": lambda: belonging.withdraw(own, ben, actor=ben),
    }
    for name, act in acts.items():
        with pytest.raises(Refusal, match=r"belongs to anna|only the owner"):
            act()
        assert not AuditEvent.objects.filter(actor=ben).exists(), name


def test_each_grant_lets_do_what_it_says(anna, ben, own):
    assert not belonging.may(ben, own, "see")
    for tell, wake in ((False, False), (True, False), (False, True)):
        belonging.grant(own, ben, tell=tell, wake=wake, actor=anna)
        done = [belonging.may(ben, own, act) for act in ("see", "tell", "wake")]
        assert done == [True, tell, wake]
    assert own.grants.count() == 1
    assert belonging.may(None, own, "wake")  # the host's own account


def test_a_grant_gives_no_right_that_the_roles_do_not(client, anna, own):
    vera = somebody("vera", "viewer")
    belonging.grant(own, vera, tell=True, wake=True, actor=anna)
    client.force_login(vera)
    assert client.post(reverse("assistant-wake", args=[NAME])).status_code == 403


def test_an_approver_who_sees_it_sends_back_with_a_note(anna, ben, own):
    from assistants.sending_back import send_back

    belonging.grant(own, ben, actor=anna)
    item = own.outbox.get(state="pending")
    send_back(item.pk, Person(user=ben, via="web"), expect=item.sha256, note="shorter")
    assert "shorter" in InboxMessage.objects.get().body


def test_the_owner_grants_and_gives_away_on_the_page_and_it_is_written_down(client, anna, ben, own):
    client.force_login(anna)
    place = reverse("assistant-share", args=[NAME])
    client.post(place, {"what": "grant", "person": "ben", "wake": "1"})
    grant = own.grants.get()
    assert (grant.user, grant.may_tell, grant.may_wake) == (ben, False, True)
    assert (
        "<strong>ben</strong> may see, wake"
        in client.get(reverse("assistant", args=[NAME])).content.decode()
    )
    client.post(place, {"what": "withdraw", "person": "ben"})
    assert not own.grants.exists()
    assert client.post(place, {"what": "owner", "person": "ben"})["Location"] == "/assistants/"
    own.refresh_from_db()
    assert own.owner == ben
    client.post(place, {"what": "owner", "person": "anna"})
    own.refresh_from_db()
    assert own.owner == ben
    found = AuditEvent.objects.filter(action__startswith="assistant.").values_list(
        "action", "actor"
    )
    assert sorted(found) == [
        (f"assistant.{each}", anna.pk) for each in ("grant", "owner", "withdraw")
    ]


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"what": "grant", "person": "nobody"}, "no such person"),
        ({"what": "grant", "person": "anna"}, "owns"),
        ({"what": "withdraw", "person": "ben"}, "granted nothing"),
        ({"what": "sell", "person": "ben"}, "does not say"),
        ({"what": "owner"}, "does not say whose"),
        ({"what": "owner", "person": ""}, "does not say whose"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(client, anna, ben, own, form, why):
    client.force_login(anna)
    answer = client.post(reverse("assistant-share", args=[NAME]), form, follow=True)
    assert why in " ".join(map(str, answer.context["messages"]))
    own.refresh_from_db()
    assert own.owner == anna


def test_it_is_made_everybodys_only_when_that_is_said_outright(client, anna, own):
    client.force_login(anna)
    page = client.get(reverse("assistant", args=[NAME])).content.decode()
    said = re.search(r'<option value="([^"]+)">nobody</option>', page)[1]
    client.post(reverse("assistant-share", args=[NAME]), {"what": "owner", "person": said})
    own.refresh_from_db()
    assert own.owner is None


@pytest.mark.parametrize("what", ["owner", "grant", "withdraw", "lend"])
def test_sharing_asks_for_the_password_first_and_goes_on_with_what_was_asked(
    client, anna, ben, own, what, monkeypatch
):
    if what == "withdraw":
        belonging.grant(own, ben, actor=anna)
    before = list(AuditEvent.objects.filter(action__startswith="assistant."))
    anna.set_password(PASSWORD)
    anna.save()
    client.force_login(anna)
    at = clock.now() + dt.timedelta(minutes=10, seconds=1)
    monkeypatch.setattr("runs.clock.now", lambda: at)
    place, form = reverse("assistant-share", args=[NAME]), {"what": what, "person": "ben"}
    answer = client.post(place, form)
    assert answer.status_code == 403
    assert b"Your password, please" in answer.content
    assert list(AuditEvent.objects.filter(action__startswith="assistant.")) == before
    own.refresh_from_db()
    assert (own.owner, own.key_of) == (anna, None)
    assert own.grants.exists() is (what == "withdraw")
    again = client.post(place, {**form, "sudo_go_on": "post", "sudo_password": PASSWORD})
    assert again.status_code == 302
    done = AuditEvent.objects.filter(action=f"assistant.{what}").exists()
    assert done is (what != "lend")  # there is no key to lend


def test_what_is_nobodys_is_given_to_somebody_by_administrators_alone(client, anna):
    common = make_assistant("common")
    place = reverse("assistant-share", args=["common"])
    client.force_login(anna)
    client.post(place, {"what": "owner", "person": "anna"})
    common.refresh_from_db()
    assert common.owner is None
    client.force_login(somebody("root", "administrator"))
    client.post(place, {"what": "grant", "person": "anna"})
    assert not common.grants.exists()
    client.post(place, {"what": "owner", "person": "anna"})
    common.refresh_from_db()
    assert common.owner == anna
