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
