"""The gate: what was read is what lands, when enough people said so, once."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.db import connection

from changes import attempts, gate
from changes.models import Change
from runs.models import AuditEvent, Decision
from runs.models.people import TerminalAccount
from runs.refusal import Refusal
from runs.verdicts import Person
from tests.changes.rows import LEASE_S, OWNER, SOMEBODY, run_git, state, yes

pytestmark = pytest.mark.django_db


def people(*names: str) -> list[Person]:
    return [Person(user=User.objects.create_user(name), via="web") for name in names]


def test_an_accepted_change_is_one_commit_on_a_branch_of_its_own(project):
    change = project.change(task="add new\n\nand say why", model="m-1")

    standing = gate.accept(change.uid, SOMEBODY, yes(expect=change.attempt.digest[:12]))
    landed = gate.land(change.uid)

    assert (standing.change.state, landed.state) == ("landing", "accepted")
    branch = f"sanduk/{change.uid}"
    assert run_git(project.path, "rev-parse", branch) == landed.landed_commit
    assert run_git(project.path, "rev-parse", f"{branch}^{{tree}}") == change.attempt.tree
    said = run_git(project.path, "log", "-1", "--format=%an <%ae>%n%cn <%ce>%n%B", branch)
    assert said.splitlines()[:3] == [
        "scripted <scripted@agents.invalid>", "Anna <anna@example.org>", "add new",
    ]  # fmt: skip
    trailers = run_git(project.path, "log", "-1", "--format=%(trailers:unfold)", branch)
    assert trailers.splitlines() == [
        f"Sanduk-Change: {change.uid}",
        "Sanduk-Agent: scripted",
        "Sanduk-Model: m-1",
        f"Sanduk-Digest: {change.attempt.digest}",
        "Sanduk-Tests: none are named for this repository",
        "Sanduk-Approved-By: anna",
    ]
    assert run_git(project.path, "status", "--porcelain") == ""
    assert run_git(project.path, "fsck", "--strict") == ""


def test_who_decided_and_on_what_is_kept(project):
    change = project.change()
    digest = change.attempt.digest
    gate.accept(change.uid, SOMEBODY, yes(reason="fine"))
    gate.land(change.uid)

    decision = Decision.objects.get(subject=f"change:{change.uid}")
    assert (decision.digest, decision.reason, decision.account) == (digest, "fine", "anna")
    done = AuditEvent.objects.filter(subject=f"change:{change.uid}").order_by("number")
    assert [each.action for each in done] == ["change.approve", "change.land"]
    assert done[0].detail["sha256"] == digest
    assert done[1].detail["commit"] == Change.objects.get(pk=change.pk).landed_commit


def test_another_digest_than_the_one_that_was_read_is_refused(project):
    change = project.change()

    for expect in ("0" * 64, change.attempt.digest[:11], ""):
        with pytest.raises(Refusal, match=r"read it again|too short"):
            gate.accept(change.uid, SOMEBODY, yes(expect=expect))
        with pytest.raises(Refusal, match=r"read it again|too short"):
            gate.reject(change.uid, SOMEBODY, expect=expect, reason="no")
    assert state(change) == "review"


def test_what_the_store_holds_must_be_what_was_reviewed(project, monkeypatch):
    change = project.change()
    other = project.change({"evil.py": "x\n"}).attempt.tree
    real = attempts.patches.patch
    monkeypatch.setattr(
        attempts.patches, "patch", lambda store, base, tree, **how: real(store, base, other, **how)
    )

    with pytest.raises(Refusal, match="not what came back"):
        gate.accept(change.uid, SOMEBODY, yes())
    assert not Decision.objects.exists()


def test_a_row_that_was_altered_between_decision_and_landing_lands_nothing(project):
    change = project.change()
    evil = project.change({"evil.py": "x\n"}).attempt.tree
    gate.accept(change.uid, SOMEBODY, yes())
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE changes_attempt SET tree = %s WHERE id = %s", [evil, change.attempt_id]
        )

    with pytest.raises(Refusal, match="not what came back"):
        gate.land(change.uid)
    assert state(change) == "review"
    assert run_git(project.path, "branch", "--list", "sanduk/*") == ""


def test_a_rejection_needs_a_reason_and_ends_it(project):
    change = project.change()

    with pytest.raises(Refusal, match="--reason"):
        gate.reject(change.uid, SOMEBODY, reason=" ")
    gate.reject(change.uid, SOMEBODY, reason="not like this")

    assert state(change) == "rejected"
    assert (change.reason, change.decided_by) == ("not like this", "anna")
    with pytest.raises(Refusal, match="already rejected by anna"):
        gate.accept(change.uid, Person(account="ben"), yes())
    with pytest.raises(Refusal, match="nothing to land"):
        gate.land(change.uid)


def test_as_many_different_people_as_the_rules_ask_must_accept(project):
    project.rule("approvals = 2\n")
    change = project.change()
    anna, ben = people("anna", "ben")

    first = gate.accept(change.uid, anna, yes())
    assert (first.change.state, first.approvals, first.missing) == ("review", 1, 1)
    with pytest.raises(Refusal, match=r"anna has decided on change .* already"):
        gate.accept(change.uid, anna, yes())
    second = gate.accept(change.uid, ben, yes())

    assert (second.change.state, second.missing) == ("landing", 0)
    assert "Sanduk-Approved-By: anna\nSanduk-Approved-By: ben" in second.change.landing["message"]


def test_an_account_of_no_user_cannot_be_one_of_two(project):
    project.rule("approvals = 2\n")

    with pytest.raises(Refusal, match="sanduk user map anna USER"):
        gate.accept(project.change().uid, SOMEBODY, yes())


def test_one_no_outweighs_a_yes(project):
    project.rule("approvals = 2\n")
    change = project.change()
    anna, ben = people("anna", "ben")
    gate.accept(change.uid, anna, yes())

    gate.reject(change.uid, ben, reason="no")

    assert state(change) == "rejected"


def test_an_approval_of_an_attempt_that_was_replaced_counts_no_more(project):
    project.rule("approvals = 2\n")
    change = project.change()
    anna, ben = people("anna", "ben")
    gate.accept(change.uid, anna, yes())
    gate.revise(change.uid, ben, "shorter", owner=OWNER, lease_s=LEASE_S)
    project.attempt(change, {"new.py": "y = 2\n"})

    standing = gate.accept(change.uid, ben, yes())

    assert (standing.change.state, standing.approvals) == ("review", 1)


def test_a_held_secret_needs_a_second_person_and_a_reason(project):
    anna, ben = people("anna", "ben")
    change = project.change({"a.py": "k = 'held-secret-77'\n"}, requested_by=anna.user)

    with pytest.raises(Refusal, match=r"a\.py line 1: a secret of this host, K.*--reason"):
        gate.accept(change.uid, ben, yes())
    with pytest.raises(Refusal, match="a second person"):
        gate.accept(change.uid, anna, yes(reason="it is fine"))
    with pytest.raises(Refusal, match="a second person"):
        gate.accept(change.uid, SOMEBODY, yes(reason="it is fine"))
    assert gate.accept(change.uid, ben, yes(reason="a test key")).change.state == "landing"


def test_who_asked_for_a_revision_is_an_author_too(project):
    project.rule("exclude_author = true\n")
    anna, ben, carl = people("anna", "ben", "carl")
    TerminalAccount.objects.create(account="anna", user=anna.user)
    change = project.change(requested_as="anna")
    gate.revise(change.uid, ben, "shorter", owner=OWNER, lease_s=LEASE_S)
    project.attempt(change, {"new.py": "y = 2\n"})

    for author in (anna, ben):
        with pytest.raises(Refusal, match="a second person"):
            gate.accept(change.uid, author, yes())
    assert gate.accept(change.uid, carl, yes()).change.state == "landing"


@pytest.mark.parametrize(
    ("files", "asked"),
    [
        ({"my_secrets.py": "x = 1\n"}, False),
        ({"tests/test_a.py": 'password = "s3cr3t!x"\n'}, False),
        ({"a.py": 'password = "s3cr3t!x"\n'}, True),
        ({".env": "x\n"}, True),
    ],
)
def test_only_what_may_be_a_secret_asks_for_a_reason(project, files, asked):
    change = project.change(files)

    if asked:
        with pytest.raises(Refusal, match="may hold a secret"):
            gate.accept(change.uid, SOMEBODY, yes())
    gate.accept(change.uid, SOMEBODY, yes(reason="it is made up" if asked else ""))


def test_what_could_not_be_checked_needs_a_reason(project):
    change = project.change({"a.zip": b"PK\x03\x04\0"})

    with pytest.raises(Refusal, match=r"could not be checked, first a\.zip"):
        gate.accept(change.uid, SOMEBODY, yes())
    gate.accept(change.uid, SOMEBODY, yes(reason="I unpacked it"))


def test_rules_that_cannot_be_read_let_nothing_land(project):
    change = project.change()
    project.rule("approvels = 2\n")

    with pytest.raises(Refusal, match="there is no such key"):
        gate.accept(change.uid, SOMEBODY, yes())
    assert state(change) == "review"


def test_accepting_needs_a_green_of_this_command_on_this_content(project):
    project.rule('test_command = "pytest -q"\n')
    change = project.change()

    with pytest.raises(gate.TestsNeeded):
        gate.accept(change.uid, SOMEBODY, yes())
    project.tested(change, "true")
    project.tested(project.change({"b.py": "x\n"}), "pytest -q")
    with pytest.raises(gate.TestsNeeded):
        gate.accept(change.uid, SOMEBODY, yes())
    project.tested(change, "pytest -q")
    standing = gate.accept(change.uid, SOMEBODY, yes())

    assert "Sanduk-Tests: passed" in standing.change.landing["message"]


@pytest.mark.parametrize("outcome", ["failed", "timed_out", "not_run"])
def test_tests_by_hand_that_are_not_green_need_a_reason(project, outcome):
    change = project.change()
    project.tested(change, "true")
    project.tested(change, "make check", outcome)
    known = outcome.replace("_", " ")

    with pytest.raises(Refusal, match=f"by hand: {known}; letting it pass needs a --reason"):
        gate.accept(change.uid, SOMEBODY, yes())
    with pytest.raises(Refusal, match="--no-test needs a --reason"):
        gate.accept(change.uid, SOMEBODY, yes(no_test=True))
    standing = gate.accept(change.uid, SOMEBODY, yes(reason="a slow machine"))

    trailer = f"Sanduk-Tests: none are named for this repository; by hand, {known}\n"
    assert trailer in standing.change.landing["message"]


@pytest.mark.parametrize("outcome", ["failed", "timed_out", "not_run"])
def test_tests_that_are_not_green_refuse_unless_somebody_says_why_not(project, outcome):
    project.rule('test_command = "pytest -q"\n')
    change = project.change()
    project.tested(change, "pytest -q")
    project.tested(change, "pytest -q", outcome)
    known = outcome.replace("_", " ")

    with pytest.raises(Refusal, match=known):
        gate.accept(change.uid, SOMEBODY, yes(reason="x"))
    with pytest.raises(Refusal, match="--no-test needs a --reason"):
        gate.accept(change.uid, SOMEBODY, yes(no_test=True))
    standing = gate.accept(change.uid, SOMEBODY, yes(no_test=True, reason="flaky"))

    assert f"Sanduk-Tests: {known}; accepted without them" in standing.change.landing["message"]
    event = AuditEvent.objects.get(action="change.approve")
    assert event.detail["no_test"] is True
    assert event.detail["reason"] == "flaky"


def test_a_green_of_the_attempt_before_is_not_this_ones(project):
    project.rule('test_command = "true"\n')
    change = project.change()
    project.tested(change, "true")
    gate.revise(change.uid, SOMEBODY, "more", owner=OWNER, lease_s=LEASE_S)
    project.attempt(change, {"new.py": "y = 2\n"})

    with pytest.raises(gate.TestsNeeded):
        gate.accept(change.uid, SOMEBODY, yes())


@pytest.mark.django_db(transaction=True)
def test_of_a_yes_and_a_no_at_the_same_moment_one_is_heard(project):
    barrier = threading.Barrier(2, timeout=30)
    change = project.change()

    def decide(accepting: bool) -> str:
        try:
            barrier.wait()
            if accepting:
                gate.accept(change.uid, Person(account="anna"), yes())
            else:
                gate.reject(change.uid, Person(account="ben"), reason="no")
        except Refusal:
            return ""
        finally:
            connection.close()
        return "yes" if accepting else "no"

    with ThreadPoolExecutor(2) as pool:
        heard = [each for each in pool.map(decide, [True, False]) if each]

    assert len(heard) == 1
    assert state(change) == {"yes": "landing", "no": "rejected"}[heard[0]]
    assert Decision.objects.filter(subject=f"change:{change.uid}").count() == 1


def test_a_store_that_is_gone_lets_nothing_pass(project):
    change = project.change()
    shutil.rmtree(project.store.path)

    with pytest.raises(Refusal, match="cannot be read any more"):
        gate.accept(change.uid, SOMEBODY, yes())
    assert state(change) == "review"
