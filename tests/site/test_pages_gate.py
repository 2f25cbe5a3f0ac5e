"""The gate on the web: what was read is what leaves, one person at a time, and by POST alone."""

from __future__ import annotations

import datetime as dt

import pytest
from django.urls import reverse

from assistants import deciding, places
from assistants.delivery import deliver_due
from assistants.models import Delivery, Destination, InboxMessage, OutboxItem
from runs import clock, four_eyes, markdown, queue
from runs.models import AuditEvent, Decision
from tests.factories import make_assistant, make_run
from tests.site.pages import make_item, somebody

pytestmark = pytest.mark.django_db
BODY = "# Weekly digest\n\nAll is well."


@pytest.fixture
def ada():
    return somebody("ada", "approver")


@pytest.fixture
def client(client, ada):
    client.force_login(ada)
    return client


@pytest.fixture
def item():
    return make_item(make_assistant("daily"), BODY)


def decide(client, item, verdict: str, **fields: str):
    leads = places.digest_of_places(item)
    form = {"verdict": verdict, "digest": item.sha256, "places": leads, **fields}
    answer = client.post(reverse("outbox-decide", args=[item.pk]), form, follow=True)
    item.refresh_from_db()
    return answer


def said(answer) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


def test_approving_is_written_down_with_who_what_and_how(client, item, ada):
    place = Destination.objects.create(name="mail", kind="file", config={})
    item.assistant.destinations.add(place)

    decide(client, item, "approve")

    assert item.state == "approved"
    assert item.decided_by == "ada"
    decision = Decision.objects.get()
    assert (decision.actor, decision.digest, decision.via) == (ada, item.sha256, "web")
    assert Delivery.objects.filter(item=item, destination=place).exists()


def test_only_the_last_approval_has_a_worker_send_it_at_once(client, item):
    item.approvals = 2
    item.save()
    decide(client, item, "approve")
    assert queue.waiting(queue.CONTROL) == 0

    client.force_login(somebody("ben", "approver"))
    decide(client, item, "approve")

    assert item.state == "approved"
    assert queue.waiting(queue.CONTROL) == 1


def test_an_item_that_is_not_what_was_read_stays_and_the_page_says_so(client, item):
    answer = decide(client, item, "approve", digest="0" * 64)
    assert answer.status_code == 409
    assert item.state == "pending"
    assert "read it again" in said(answer)


def a_place(item, name: str) -> Destination:
    place = Destination.objects.create(name=name, kind="file", config={"path": f"/srv/{name}"})
    item.assistant.destinations.add(place)
    return place


def led_elsewhere(item) -> None:
    a_place(item, "second")


def led_to_another_file(item) -> None:
    item.assistant.destinations.update(config={"path": "/srv/other"})


def led_nowhere(item) -> None:
    item.assistant.destinations.clear()


@pytest.mark.parametrize("changed", [led_elsewhere, led_to_another_file, led_nowhere])
def test_an_old_page_sends_nothing_to_places_that_it_did_not_show(client, item, changed):
    a_place(item, "first")
    shown = client.get(reverse("outbox-item", args=[item.pk])).context["places_digest"]
    changed(item)

    answer = decide(client, item, "approve", places=shown)

    assert answer.status_code == 409
    assert "changed meanwhile" in said(answer)
    assert item.state == "pending"
    assert not Decision.objects.exists()
    assert not Delivery.objects.exists()


def test_a_place_that_is_added_after_the_approval_does_not_get_it(client, item):
    decide(client, item, "approve")
    a_place(item, "later")

    deliver_due()

    assert item.state == "approved"
    assert not Delivery.objects.exists()


@pytest.mark.parametrize("digest", ["", "abc", "é" * 64])
def test_a_form_without_the_digest_decides_nothing(client, item, digest):
    assert decide(client, item, "approve", digest=digest).status_code == 409
    assert item.state == "pending"


@pytest.mark.parametrize("verdict", ["reject", "back"])
def test_a_rejection_needs_a_reason_and_keeps_what_was_typed(client, item, verdict):
    assert decide(client, item, verdict, reason="   ").status_code == 409
    assert item.state == "pending"


def test_what_was_typed_comes_back_when_the_decision_is_refused(client, item):
    answer = decide(client, item, "reject", reason="too <b>long</b>", digest="0" * 64)
    assert "too &lt;b&gt;long&lt;/b&gt;</textarea>" in answer.content.decode()


@pytest.mark.parametrize("verdict", ["approve", "reject", "back"])
def test_a_reason_without_end_is_refused_in_one_line_and_kept_nowhere(client, item, verdict):
    answer = decide(client, item, verdict, reason="x" * 70_000)

    assert answer.status_code == 409
    assert "at most 20,000 fit" in said(answer)
    assert item.state == "pending"
    assert not Decision.objects.exists()
    assert not InboxMessage.objects.exists()


def test_a_rejection_keeps_its_reason(client, item):
    decide(client, item, "reject", reason="not today")
    assert (item.state, item.reason) == ("rejected", "not today")


def test_sending_back_rejects_it_and_tells_the_assistant_why(client, item, ada):
    answer = decide(client, item, "back", reason="name the customer")
    assert "was sent back: your note is a message for daily" in said(answer)
    assert item.state == "rejected"
    message = InboxMessage.objects.get()
    assert message.assistant == item.assistant
    assert message.author == ada
    assert "name the customer" in message.body
    assert str(item.pk) in message.body


@pytest.mark.parametrize(
    ("state", "head"),
    [
        ("pending", "wants to send"), ("approved", "may send"), ("delivered", "sent"),
        ("rejected", "wanted to send"),
    ],
)  # fmt: skip
def test_what_was_decided_is_not_told_as_if_it_waited(client, item, state, head):
    OutboxItem.objects.filter(pk=item.pk).update(
        state=state, decided_at=None if state == "pending" else clock.now(), decided_by="ben",
        body=f"{BODY}\u200b\u200b", delivered_at=clock.now() if state == "delivered" else None,
    )  # fmt: skip
    page = client.get(reverse("outbox-item", args=[item.pk])).content.decode()
    assert f"<strong>daily</strong> {head}</p>" in page
    assert ("Look at this first" in page) is (state == "pending")
    assert ("approved by <strong>ben" in page) is (state == "delivered")
    assert "2 characters that nobody would see stand here as marks" in page


def test_a_possible_secret_passes_only_with_a_reason_and_stands_first(client, item):
    item.secrets_found = [{"kind": "token", "name": "a GitHub token", "spelling": "plain",
                           "line": 3, "times": 1}]  # fmt: skip
    item.save(update_fields=["secrets_found"])
    page = client.get(reverse("outbox-item", args=[item.pk])).content.decode()
    assert page.index("a GitHub token") < page.index("What leaves, exactly")

    assert decide(client, item, "approve").status_code == 409
    assert item.state == "pending"
    decide(client, item, "approve", reason="it is an example")
    assert item.state == "approved"


def test_the_second_of_two_people_is_told_who_decided_and_when(client, item, ada):
    decide(client, item, "approve")
    client.force_login(somebody("bea", "approver"))

    answer = decide(client, item, "reject", reason="no")

    assert item.state == "approved"
    assert answer.status_code == 409
    assert "already approved by ada at" in said(answer)
    page = answer.content.decode()
    assert "by <strong>ada</strong>" in page
    assert 'name="verdict"' not in page


def test_a_double_click_decides_once(client, item):
    decide(client, item, "approve")
    decide(client, item, "approve")
    assert Decision.objects.count() == 1


def test_an_item_that_two_must_approve_waits_for_the_second(client, item):
    item.approvals = 2
    item.save(update_fields=["approvals"])
    assert "1 more approval" in said(decide(client, item, "approve"))
    assert item.state == "pending"
    client.force_login(somebody("bea", "approver"))
    decide(client, item, "approve")
    assert item.state == "approved"
    assert item.decided_by == "ada, bea"


def test_an_expired_item_offers_no_decision_and_takes_none(client, item):
    item.created_at = clock.now() - dt.timedelta(days=2)
    item.expires_at = clock.now() - dt.timedelta(seconds=1)
    item.save(update_fields=["created_at", "expires_at"])
    page = client.get(reverse("outbox-item", args=[item.pk])).content.decode()
    assert 'name="verdict"' not in page
    item.refresh_from_db()
    assert item.state == "pending"  # looking changes nothing
    assert decide(client, item, "approve").status_code == 409
    assert item.state == "expired"


def test_with_four_eyes_who_woke_it_on_the_web_cannot_approve_even_as_a_superuser(client, ada):
    ada.is_superuser = True
    ada.save()
    assistant = make_assistant("daily")
    client.post(reverse("assistant-wake", args=["daily"]))
    assistant.wakeups.update(
        state="ended", outcome="succeeded", ended_at=clock.now(), run=make_run(state="ended")
    )
    item = make_item(assistant, BODY, wakeup=assistant.wakeups.get())
    four_eyes.choose(True)

    assert decide(client, item, "approve").status_code == 409
    assert item.state == "pending"
    client.force_login(somebody("bea", "approver"))
    decide(client, item, "approve")
    assert item.state == "approved"


def test_with_four_eyes_who_told_it_something_cannot_approve(client, item, ada):
    message = InboxMessage.objects.create(assistant=item.assistant, body="hi", author=ada)
    message.given_to.add(item.wakeup)
    four_eyes.choose(True)
    assert decide(client, item, "approve").status_code == 409
    four_eyes.choose(False)
    decide(client, item, "approve")
    assert item.state == "approved"


def test_an_unknown_delivery_is_settled_by_the_word_of_a_person(client, item, ada):
    place = Destination.objects.create(name="mail", kind="file", config={})
    item.assistant.destinations.add(place)
    decide(client, item, "approve")
    Delivery.objects.update(state="unknown", ended_at=clock.now())
    assert "It has arrived" in client.get(reverse("outbox-item", args=[item.pk])).content.decode()

    place = reverse("outbox-deliver", args=[item.pk])
    client.post(place, {"what": "arrived"})
    assert Delivery.objects.get().state == "unknown"  # it did not say where
    client.post(place, {"what": "arrived", "to": "mail"})

    item.refresh_from_db()
    assert item.state == "delivered"
    assert AuditEvent.objects.get(action="delivery.arrived").actor == ada


def test_of_two_unknown_deliveries_one_is_said_to_have_arrived(client, item):
    for name in ("mail", "log"):
        place = Destination.objects.create(name=name, kind="file", config={})
        item.assistant.destinations.add(place)
    decide(client, item, "approve")
    Delivery.objects.update(state="unknown", ended_at=clock.now())
    page = client.get(reverse("outbox-item", args=[item.pk])).content.decode()
    assert "It has arrived at mail" in page
    assert "It has arrived at log" in page

    client.post(reverse("outbox-deliver", args=[item.pk]), {"what": "arrived", "to": "log"})

    states = dict(Delivery.objects.values_list("destination__name", "state"))
    assert states == {"mail": "unknown", "log": "sent"}


def test_the_gate_shows_the_whole_digest_the_place_and_the_exact_text(client, item):
    place = Destination.objects.create(name="team-mail", kind="file", config={})
    item.assistant.destinations.add(place)
    address = reverse("outbox-item", args=[item.pk])
    page = client.get(f"{address}?show=raw").content.decode()
    for part in (item.sha256, "team-mail", "All is well.", "Facts of the run"):
        assert part in page
    assert client.get(reverse("outbox-body", args=[item.pk])).content == BODY.encode()


def test_the_list_and_the_gate_say_what_there_is_not(client):
    assert "Nothing waits for a decision" in client.get(reverse("outbox")).content.decode()
    assert client.get(f"{reverse('outbox')}?show=everything").status_code == 404
    assert client.get(reverse("outbox-item", args=[99])).status_code == 404


def test_a_long_report_is_rendered_once_and_in_its_beginning_alone(client, monkeypatch):
    body = "# A report\n\n" + "some *words*\n\n" * 160_000
    item = make_item(make_assistant("long"), body)
    rendered, render = [], markdown._MARKDOWN.render
    monkeypatch.setattr(
        markdown._MARKDOWN, "render", lambda text: rendered.append(len(text)) or render(text)
    )
    for _ in range(2):
        assert client.get(reverse("outbox-item", args=[item.pk])).status_code == 200
    assert rendered == [markdown.RENDERED_MAX]
    raw = client.get(f"{reverse('outbox-item', args=[item.pk])}?show=raw")
    assert len(raw.content) < 2 * deciding.SHOWN_MAX
    assert client.get(reverse("outbox-body", args=[item.pk])).content == body.encode()
