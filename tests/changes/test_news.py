"""E-mails about changes: who is told of what waits, failed or is not green, and in which words."""

from __future__ import annotations

import pytest
from django.core import mail

from assistants import noticing
from changes import gate, news
from changes.models import Change, Skill, TestRun
from runs import clock
from runs.models import AuditEvent
from runs.news import Asked
from runs.verdicts import Person
from tests.assistants.test_noticing import new_item, now, server, telling
from tests.changes.rows import OWNER, Project, make_attempt, make_change, make_repository, reviewed
from tests.factories import make_assistant, make_run
from tests.site.pages import EVIL

__all__ = ["now", "server"]
pytestmark = pytest.mark.django_db
SITE = "https://sanduk.example"


@pytest.fixture(autouse=True)
def home(tmp_path, settings):
    settings.SANDUK_HOME = tmp_path
    settings.SANDUK_FOUR_EYES = None


@pytest.fixture
def wants(now):
    """wants(name, roles...): somebody who chose, a moment ago, to be told."""

    def choose(name: str, *roles: str, **of: bool):
        person = telling(name, *roles, **of)
        now(seconds=1)
        return person

    return choose


def letters(now, **by: float) -> dict[str, str]:
    """What people were told after so long: the text by the address."""
    mail.outbox.clear()
    now(**(by or {"minutes": 6}))
    noticing.send_due()
    return {letter.to[0]: f"{letter.subject}\n{letter.body}" for letter in mail.outbox}


def ended(change: Change, outcome: str, **fields) -> TestRun:
    attempt = change.attempt
    row = TestRun.objects.create(
        attempt=attempt, digest=attempt.digest, command="make test", output=EVIL, **fields
    )
    code = 0 if outcome == "passed" else 1
    assert TestRun.objects.finish(row.pk, outcome, exit_code=code, reason=EVIL)
    return row


def failed(reason: str, **fields) -> Change:
    change = make_change(**fields)
    assert Change.objects.claim(change.pk, OWNER, 30.0)
    assert Change.objects.give_up(change.pk, OWNER, "failed", reason)
    return change


def test_changes_that_wait_are_told_of_once_and_together_with_the_items(now, wants):
    wants("ada", "approver")
    reviewed()
    assert letters(now, minutes=1) == {}  # what comes meanwhile is told of together
    shop = make_repository("/srv/shop")
    reviewed(make_change(shop))
    reviewed(make_change(shop))
    new_item(make_assistant("daily"), "said")

    [told] = letters(now).values()

    assert told.splitlines()[0] == (
        "sanduk: 1 item waits for a decision, 3 changes wait for a decision"
    )
    assert f"3 changes wait for a decision: {SITE}/changes/" in told
    assert f"  {shop.uid}: 2" in told
    assert letters(now) == {}
    assert AuditEvent.objects.filter(action="notice.send").count() == 1


def test_nothing_that_an_agent_or_a_directory_says_is_told(now, wants):
    wants("ada", "approver", troubles=True)
    place = make_repository("/srv/\n  see: http://evil.example\n.example")
    change = reviewed(make_change(place, task=EVIL, agent=EVIL[:200]), agent=EVIL[:200])
    ended(change, "failed")
    Skill.objects.create(
        repository=place, attempt=change.attempt, name="x", version=1, description=EVIL[:400],
        body=EVIL, sha256="0" * 64,
    )  # fmt: skip
    failed(EVIL, repository=place, task=EVIL)

    [told] = letters(now).values()

    for word in ("script", "evil.example", "\u202e", "\x1b"):
        assert word not in told
    lines = told.splitlines()[1:]
    assert lines[1::2] == [f"  {place.uid}: 1"] * 4
    assert [line.partition(": ")[0] for line in lines[::2]] == [
        "1 change waits for a decision", "1 skill waits for a decision", "1 change failed",
        "1 change has tests that are not green",
    ]  # fmt: skip


def test_only_those_are_told_who_want_it_and_whose_word_would_count(now, wants):
    ada = wants("ada", "approver", "operator")
    wants("ben", "approver")
    wants("vera", "viewer", troubles=True)
    wants("olga", "approver", items=False)
    change = reviewed(make_change(requested_by=ada), digest="a" * 64)
    change.attempt.flags.create(
        category="hook", severity="high", reason="it runs by itself", needs_second_person=True
    )

    assert set(letters(now)) == {"ben@example.org"}


def test_with_four_eyes_who_asked_is_not_told_that_it_waits(now, wants, settings):
    settings.SANDUK_FOUR_EYES = True
    ada = wants("ada", "approver", "operator")
    wants("ben", "approver")
    reviewed(make_change(requested_by=ada))

    assert set(letters(now)) == {"ben@example.org"}


def test_what_was_decided_meanwhile_is_not_told_of(now, wants, project: Project):
    wants("ada", "approver", troubles=True)
    change = project.change()
    ended(change, "failed")
    now(minutes=1)
    gate.reject(change.uid, Person(account="anna"), reason="no")

    assert letters(now) == {}


def test_another_attempt_is_told_of_again(now, wants):
    wants("ada", "approver")
    change = reviewed()
    assert len(letters(now)) == 1
    assert Change.objects.claim(change.pk, OWNER, 30.0, revision=True)
    assert letters(now) == {}
    assert Change.objects.give_up(change.pk, OWNER, "failed", "run 1 failed")

    assert list(letters(now)) == ["ada@example.org"]


def test_what_failed_is_told_of_to_who_sees_changes_and_never_what_a_person_ended(now, wants):
    wants("vera", "viewer", items=False, troubles=True)
    wants("nobody", items=False, troubles=True)
    failed("run 0001 failed: the agent said so")
    failed("cancelled by ada before it began")
    failed("run 0002 cancelled", run=make_run(state="ended", outcome="cancelled"))
    assert Change.objects.drop(make_change().pk, "the process that made it is gone")

    told = letters(now)

    assert set(told) == {"vera@example.org"}
    assert f"2 changes failed: {SITE}/changes/?show=nothing\n" in told["vera@example.org"]
    assert letters(now) == {}


def test_a_revision_that_came_to_nothing_is_told_as_in_review_again(now, wants):
    wants("vera", "viewer", items=False, troubles=True)
    for reason in ("run 0003 timed out", "cancelled by ada"):
        change = reviewed()
        assert Change.objects.claim(change.pk, OWNER, 30.0, revision=True)
        assert Change.objects.give_up(change.pk, OWNER, "failed", reason)

    [told] = letters(now).values()

    assert told.startswith("sanduk: 1 change is in review again\n")


@pytest.mark.parametrize("outcome", ["failed", "timed_out", "not_run"])
def test_tests_that_are_not_green_are_told_of_once_for_a_change(now, wants, outcome):
    wants("vera", "viewer", items=False, troubles=True)
    change = reviewed()
    ended(change, outcome)
    ended(change, outcome)

    [told] = letters(now).values()

    assert told == (
        "sanduk: 1 change has tests that are not green\n"
        f"1 change has tests that are not green: {SITE}/changes/\n  {change.repository.uid}: 1\n"
    )
    assert letters(now) == {}


def test_tests_that_became_green_or_go_on_or_are_of_an_earlier_attempt_are_not_told_of(now, wants):
    wants("vera", "viewer", items=False, troubles=True)
    ended(reviewed(), "passed")
    again = reviewed()
    ended(again, "failed")
    now(seconds=5)
    ended(again, "passed")
    earlier = reviewed()
    ended(earlier, "failed")
    assert Change.objects.claim(earlier.pk, OWNER, 30.0, revision=True)
    reviewed_again(earlier)
    going = reviewed().attempt
    TestRun.objects.create(attempt=going, digest=going.digest, command="make test")

    assert letters(now) == {}


def reviewed_again(change: Change) -> None:
    assert Change.objects.present(change.pk, OWNER, make_attempt(change))


def test_who_wants_nothing_costs_no_question_about_changes(now, wants, django_assert_num_queries):
    ada = wants("ada", "approver")
    at = clock.now()
    with django_assert_num_queries(0):
        assert list(news.of(Asked(ada, False, False, at, at))) == []
