"""The outbox as a list: filters that one keeps, and several items rejected at once."""

from __future__ import annotations

import pytest
from django.urls import reverse

from assistants import filtering
from assistants.models import OutboxFilter, OutboxItem
from runs.models import AuditEvent, Decision
from tests.factories import make_assistant
from tests.site.pages import EVIL, SCRIPT, make_item, somebody

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(client):
    found = somebody("ada", "approver")
    client.force_login(found)
    return found


@pytest.fixture
def daily():
    return make_assistant("daily")


@pytest.fixture
def items(daily):
    return [make_item(daily, f"text {number}") for number in range(3)]


def word(item: OutboxItem) -> str:
    return f"{item.pk}:{item.sha256}"


def reject(client, *words: str, **fields: str):
    form = {"item": list(words), "reason": "not today", **fields}
    return client.post(reverse("outbox-reject"), form, follow=True)


def states() -> list[str]:
    return list(OutboxItem.objects.order_by("pk").values_list("state", flat=True))


def said(answer) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


# -- rejecting several ----------------------------------------------------------------------------
def test_several_are_rejected_with_one_reason_each_as_a_decision_of_its_own(client, ada, items):
    answer = reject(client, word(items[0]), word(items[2]))

    assert "2 items were rejected" in said(answer)
    assert states() == ["rejected", "pending", "rejected"]
    decisions = list(Decision.objects.values_list("subject", "digest", "actor", "reason"))
    assert decisions == [
        (f"outbox:{each.pk}", each.sha256, ada.pk, "not today") for each in (items[0], items[2])
    ]
    assert AuditEvent.objects.filter(action="outbox.reject").count() == 2


def test_one_that_is_not_what_was_read_stays_and_the_others_are_rejected(client, ada, items):
    wrong = f"{items[1].pk}:{'0' * 64}"
    answer = reject(client, word(items[0]), wrong, word(items[2]))

    assert answer.status_code == 409
    assert "1 item" not in said(answer)
    assert "2 items were rejected" in said(answer)
    assert f"item {items[1].pk} has the digest" in said(answer)
    assert states() == ["rejected", "pending", "rejected"]
    assert ">not today</textarea>" in answer.content.decode()


def test_one_that_was_decided_meanwhile_is_told(client, ada, items):
    OutboxItem.objects.filter(pk=items[0].pk).update(
        state="approved", decided_at=items[0].created_at, decided_by="ben"
    )
    answer = reject(client, word(items[0]), word(items[1]))

    assert "already approved by ben" in said(answer)
    assert states() == ["approved", "rejected", "pending"]


@pytest.mark.parametrize(
    ("words", "fields", "why"),
    [
        ([], {}, "choose items first"),
        (["ok"], {"reason": "  "}, "needs a reason"),
        (["1"], {}, "did not say what was read"),
        (["1:abc"], {}, "did not say what was read"),
        (["²:" + "0" * 64], {}, "did not say what was read"),
        ([f"{n}:{'0' * 64}" for n in range(51)], {}, "at most 50"),
    ],
)
def test_a_form_that_does_not_say_what_and_why_rejects_nothing(
    client, ada, items, words, fields, why
):
    given = [word(items[0]) if each == "ok" else each for each in words]
    answer = reject(client, *given, **fields)

    assert answer.status_code == 409
    assert why in said(answer)
    assert states() == ["pending"] * 3


def test_what_was_chosen_and_typed_stays_when_it_is_refused(client, ada, items):
    page = reject(client, word(items[1]), reason="").content.decode()
    assert f'value="{word(items[1])}" checked' in page
    assert f'value="{word(items[0])}" checked' not in page


def test_nothing_in_the_list_approves(client, ada, items):
    reject(client, word(items[0]), verdict="approve", what="approve")
    assert states()[0] == "rejected"
    page = client.get(reverse("outbox")).content.decode()
    assert "approve" not in {line.strip() for line in page.lower().split('value="')}
    assert 'value="approve"' not in page


def test_an_item_of_somebody_elses_assistant_is_not_there(client, ada, items, daily):
    daily.owner = somebody("olga", "approver")
    daily.save()

    answer = reject(client, word(items[0]))

    assert f"there is no item {items[0].pk}" in said(answer)
    assert states() == ["pending"] * 3


def test_who_may_only_look_is_offered_no_boxes(client, items):
    client.force_login(somebody("vera", "viewer"))
    page = client.get(reverse("outbox")).content.decode()
    assert 'name="item"' not in page
    assert "Reject the chosen" not in page


# -- filters --------------------------------------------------------------------------------------
@pytest.fixture
def mixed(ada, daily):
    mine = make_assistant("mine", owner=ada)
    finding = {"kind": "held", "name": "X", "spelling": "plain", "line": 1, "times": 1}
    return {
        "plain": make_item(daily, "plain"),
        "secret": make_item(daily, "secret", secrets_found=[finding]),
        "memory": make_item(mine, "memory", unreviewed_memory=True),
    }


def shown(client, **words: str) -> set[str]:
    part = client.get(reverse("outbox"), words).context["part"]
    return {item.title for item in part}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ({}, {"plain", "secret", "memory"}),
        ({"risk": "flagged"}, {"secret", "memory"}),
        ({"risk": "secret"}, {"secret"}),
        ({"risk": "memory"}, {"memory"}),
        ({"risk": "clear"}, {"plain"}),
        ({"mine": "1"}, {"memory"}),
        ({"assistant": "daily"}, {"plain", "secret"}),
        ({"assistant": "daily", "risk": "clear"}, {"plain"}),
        ({"assistant": "other"}, set()),
        ({"show": "done"}, set()),
    ],
)
def test_a_filter_lets_pass_what_it_says(client, mixed, words, found):
    assert shown(client, **words) == found


@pytest.mark.parametrize(
    "words",
    [{"risk": "none"}, {"show": "everything"}, {"assistant": "A'; --"}, {"assistant": EVIL}],
)
def test_what_is_no_filter_is_not_found(client, ada, words):
    assert client.get(reverse("outbox"), words).status_code == 404


def test_the_pages_of_a_filter_keep_it(client, ada, daily, monkeypatch):
    monkeypatch.setattr("assistants.views.outbox.PER_PAGE", 2)
    for number in range(5):
        make_item(daily, f"text {number}", unreviewed_memory=True)
    page = client.get(reverse("outbox"), {"risk": "memory", "assistant": "daily"}).content.decode()

    assert 'href="?show=waiting&amp;assistant=daily&amp;risk=memory&amp;page=2"' in page
    assert 'href="?show=done&amp;assistant=daily&amp;risk=memory"' in page


def keep(client, name: str, **words: str):
    form = {"what": "keep", "name": name, **words}
    return client.post(reverse("outbox-filters"), form, follow=True)


def test_a_filter_is_kept_by_name_for_who_kept_it_alone(client, ada):
    keep(client, " Look first ", show="waiting", risk="flagged", assistant="daily", mine="1")

    row = OutboxFilter.objects.get()
    assert (row.user, row.name) == (ada, "Look first")
    page = client.get(reverse("outbox")).content.decode()
    address = "?show=waiting&amp;assistant=daily&amp;risk=flagged&amp;mine=1"
    assert f'<a href="{address}">Look first</a>' in page
    chosen = client.get(f"{reverse('outbox')}{address.replace('&amp;', '&')}").content.decode()
    assert f'<a href="{address}" aria-current="page">Look first</a>' in chosen

    client.force_login(somebody("ben", "approver"))
    assert "Look first" not in client.get(reverse("outbox")).content.decode()
    answer = client.post(
        reverse("outbox-filters"), {"what": "forget", "name": "Look first"}, follow=True
    )
    assert "no such filter of yours" in said(answer)
    assert OutboxFilter.objects.exists()


def test_the_same_name_again_replaces_it_and_forgetting_ends_it(client, ada):
    keep(client, "one", risk="secret")
    keep(client, "one", risk="memory")
    assert OutboxFilter.objects.get().words["risk"] == "memory"

    client.post(reverse("outbox-filters"), {"what": "forget", "name": "one"})
    assert not OutboxFilter.objects.exists()


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "a\nb", "a\u202eb"])
def test_a_name_that_is_none_is_refused(client, ada, name):
    assert "a filter&#x27;s name" in keep(client, name).content.decode()
    assert not OutboxFilter.objects.exists()


def test_a_hostile_name_is_text_and_there_is_an_end_of_filters(client, ada, monkeypatch):
    monkeypatch.setattr(filtering, "KEPT_MAX", 2)
    keep(client, f"{SCRIPT}"[:60])
    keep(client, "two")
    assert "forget one first" in said(keep(client, "three"))
    page = client.get(reverse("outbox")).content.decode()
    assert SCRIPT not in page
    assert "&lt;script&gt;" in page


def test_a_filter_of_another_version_is_left_out(client, ada):
    OutboxFilter.objects.create(user=ada, name="old", words={"colour": "red"})
    assert ">old</a>" not in client.get(reverse("outbox")).content.decode()
