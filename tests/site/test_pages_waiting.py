"""The count of what waits is this person's own, and no heading says otherwise."""

from __future__ import annotations

import pytest
from django.urls import reverse

from assistants import asked, outbox
from runs import audit, clock, four_eyes, pulse
from runs.models import Decision
from runs.verdicts import Person
from tests.factories import make_assistant
from tests.site.pages import make_item, somebody

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def state_directory(tmp_path, settings):
    settings.SANDUK_HOME = tmp_path
    settings.SANDUK_FOUR_EYES = None
    pulse.stamp("worker")


def seen_by(client, user) -> tuple[str, int]:
    """Home, and the count in the frame."""
    client.force_login(user)
    return (
        client.get(reverse("home")).content.decode(),
        client.get(reverse("waiting")).json()["waiting"],
    )


def test_a_viewer_is_told_that_it_waits_for_somebody_else(client):
    make_item(make_assistant("daily"), "# Letter")
    page, count = seen_by(client, somebody("vera", "viewer"))
    assert count == 0
    assert "Nothing waits for you" in page
    assert "1 thing below waits for somebody else to decide." in page
    assert "waits for somebody else</span>" in page


def test_in_a_team_what_one_asked_for_waits_for_the_other_alone(client):
    ann, ben = (somebody(name, "administrator") for name in ("ann", "ben"))
    hers = make_item(make_assistant("daily"), "# Hers")
    make_item(make_assistant("other"), "# Anybody's")
    audit.record(asked.ACTION, asked.subject_of(hers.wakeup), actor=ann)
    assert seen_by(client, ann)[1] == 2

    four_eyes.choose(True)

    page, count = seen_by(client, ann)
    assert count == 1
    assert "1 thing waits for you" in page
    assert "1 more waits for somebody else." in page
    page, count = seen_by(client, ben)
    assert count == 2
    assert "2 things wait for you" in page
    assert "somebody else" not in page


def test_who_has_approved_already_is_not_asked_again(client):
    item = make_item(make_assistant("daily"), "# Letter", approvals=2)
    ann = somebody("ann", "approver")
    outbox.decide(
        item.pk, Decision.Verdict.APPROVE, Person(user=ann, via="web"), expect=item.sha256
    )
    assert seen_by(client, ann)[1] == 0
    assert seen_by(client, somebody("ben", "approver"))[1] == 1


def test_what_has_expired_waits_for_nobody(client):
    make_item(make_assistant("daily"), "# Late", expires_at=clock.now())
    page, count = seen_by(client, somebody("ben", "approver"))
    assert (count, "somebody else" in page) == (0, False)


def gate_and_list(client, item) -> tuple[str, str]:
    page = client.get(reverse("outbox-item", args=[item.pk])).content.decode()
    return page, client.get(reverse("outbox")).content.decode()


@pytest.mark.parametrize("why", ["no right", "asked for it", "approved it"])
def test_list_home_and_gate_say_alike_that_it_waits_for_somebody_else(client, why):
    role = "viewer" if why == "no right" else "approver"
    ann = somebody("ann", role)
    item = make_item(make_assistant("daily"), "# Letter", approvals=2)
    if why == "asked for it":
        audit.record(asked.ACTION, asked.subject_of(item.wakeup), actor=ann)
        four_eyes.choose(True)
    if why == "approved it":
        person = Person(user=ann, via="web")
        outbox.decide(item.pk, Decision.Verdict.APPROVE, person, expect=item.sha256)
    home, count = seen_by(client, ann)
    page, listed = gate_and_list(client, item)
    assert count == 0
    assert "waits for somebody else</span>" in home
    assert "waits for somebody else</span>" in listed
    assert "It waits for somebody else:</strong>" in page
    assert "Approving" not in page
    assert 'value="approve"' not in page

    client.force_login(somebody("ben", "approver"))
    page, listed = gate_and_list(client, item)
    assert "somebody else" not in page + listed
    assert "Approving lets exactly this leave." in page


def test_the_reason_that_a_possible_secret_needs_is_named_for_what_is_offered(client):
    ann = somebody("ann", "approver")
    finding = {"kind": "held", "name": "X", "spelling": "plain", "line": 1, "times": 1}
    item = make_item(make_assistant("daily"), "# Letter", secrets_found=[finding])
    client.force_login(ann)
    assert "Reason: needed to approve, reject or send back" in gate_and_list(client, item)[0]
    audit.record(asked.ACTION, asked.subject_of(item.wakeup), actor=ann)
    four_eyes.choose(True)
    assert "Reason: needed to reject or send back" in gate_and_list(client, item)[0]
