"""Two people approve the same thing: the same text, and where it goes."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User

from assistants import awaiting, deciding, places, showing_items
from assistants.models import ApprovedPlaces, Delivery, Destination, OutboxItem
from runs import audit
from runs.models import AuditEvent, Decision, TerminalAccount
from runs.refusal import Refusal
from runs.verdicts import Person
from tests.assistants.sending.making import act, approve, make_destination, make_item, reject
from tests.factories import make_assistant

pytestmark = pytest.mark.django_db


@pytest.fixture
def first() -> Destination:
    return make_destination("first", "file", path="/srv/first")


@pytest.fixture
def item(first) -> OutboxItem:
    assistant = make_assistant()
    assistant.destinations.add(first)
    return make_item(assistant, hold=True, approvals=2)


def user(name: str) -> Person:
    found = User.objects.create(username=name, is_staff=True)
    found.user_permissions.add(Permission.objects.get(codename="decide_outboxitem"))
    return Person(user=found, account=name, via="web")


def replaced(item: OutboxItem) -> None:
    item.assistant.destinations.set([make_destination("other", "file", path="/srv/other")])


def added(item: OutboxItem) -> None:
    item.assistant.destinations.add(make_destination("other", "file", path="/srv/other"))


def set_up_anew(_item: OutboxItem) -> None:
    Destination.objects.update(config={"path": "/srv/elsewhere"})


def taken_away(item: OutboxItem) -> None:
    item.assistant.destinations.clear()


@pytest.mark.parametrize("changed", [replaced, added, set_up_anew, taken_away])
def test_an_approval_counts_no_more_when_where_it_goes_is_changed_before_the_second(item, changed):
    anna, boris = user("anna"), user("boris")
    approve(item, anna)
    changed(item)

    standing = approve(item, boris)

    assert (standing.item.state, standing.approvals, standing.missing) == ("pending", 1, 1)
    assert not Delivery.objects.exists()


def test_it_goes_where_everybody_saw_it_go_once_the_first_approves_again(item):
    anna, boris = user("anna"), user("boris")
    approve(item, anna)
    replaced(item)
    approve(item, boris)

    standing = approve(item, anna, reason="the new place is right")

    assert standing.item.state == "approved"
    assert standing.item.decided_by == "anna, boris"
    assert [each.destination.name for each in Delivery.objects.all()] == ["other"]
    assert Decision.objects.count() == 2
    again = AuditEvent.objects.get(action="outbox.approve-again")
    assert (again.actor, again.detail["places"]) == (anna.user, ["other"])
    assert again.detail["reason"] == "the new place is right"


def test_one_person_never_counts_twice_however_often_they_approve_again(item):
    anna = user("anna")
    for change in (added, set_up_anew, taken_away):
        approve(item, anna)
        change(item)
    standing = approve(item, anna)

    assert (standing.item.state, standing.approvals) == ("pending", 1)
    assert ApprovedPlaces.objects.count() == 4
    with pytest.raises(Refusal, match="anna has decided on"):
        approve(item, anna)


def test_an_approval_counts_again_when_the_place_is_what_it_was(item, first):
    approve(item, user("anna"))
    set_up_anew(item)
    Destination.objects.filter(pk=first.pk).update(config={"path": "/srv/first"})

    assert approve(item, user("boris")).item.state == "approved"


def test_a_change_of_nothing_but_its_time_limit_is_no_other_place(item):
    approve(item, user("anna"))
    Destination.objects.update(timeout_s=99)

    assert approve(item, user("boris")).item.state == "approved"


def test_a_rejection_counts_wherever_it_goes(item):
    approve(item, user("anna"))
    replaced(item)

    assert reject(item, user("boris")).item.state == "rejected"


def test_an_approval_of_a_version_that_wrote_no_places_down_is_asked_for_again(item):
    anna = user("anna")
    approve(item, anna)
    ApprovedPlaces.objects.all().delete()

    assert approve(item, user("boris")).item.state == "pending"
    assert approve(item, anna).item.state == "approved"


def test_whose_approval_counts_no_more_is_told_and_asked_again(item, capsys):
    anna = user("anna")
    approve(item, anna)
    item.refresh_from_db()
    assert awaiting.items_for(anna.user) == frozenset()
    assert not any("Where it goes" in risk.head for risk in deciding.risks(item))

    replaced(item)

    assert awaiting.items_for(anna.user) == {item.pk}
    (risk,) = [each for each in deciding.risks(item) if each.head == "Where it goes has changed"]
    assert "anna approved it for first" in risk.text
    told = "\n".join(showing_items.standing(item))
    assert "that approval does not count: it was for first as it was set up then" in told
    assert "once approved, it would go to other" in told
    assert act("outbox", "show", str(item.pk)) == 0
    assert "anna may approve once more" in capsys.readouterr().out


def test_the_terminal_says_what_an_approval_is_for(item, capsys):
    TerminalAccount.objects.create(account=audit.account(), user=user("anna").user)

    assert act("approve", str(item.pk)) == 0
    assert "1 more needed, and it goes to first as set up now" in capsys.readouterr().out


def test_a_second_approver_with_an_old_page_is_refused(item):
    seen = places.digest_of_places(item)
    approve(item, user("anna"), seen_places=seen)
    replaced(item)

    with pytest.raises(Refusal, match="changed meanwhile"):
        approve(item, user("boris"), seen_places=seen)
    assert Decision.objects.count() == 1
