"""The gate: nothing of a change lands unless enough people accepted exactly what they read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.db import transaction
from django.db.models import Q

from changes import attempts, landing, pull_requests, rules
from changes.git import GitError
from changes.landing_plan import earlier, plan, restored
from changes.models import Attempt, Change, TestRun
from changes.rules import Rules
from runs import audit, clock, four_eyes
from runs.approval import ApprovalPolicy
from runs.models import AuditEvent, Decision, TerminalAccount
from runs.refusal import HostRefusal, Refusal
from runs.verdicts import Person, approvers, check_expected, write_down

REVISED = "change.revise"  # in the audit: who asked for another attempt


class TestsNeeded(Refusal):
    """A green of the tests on exactly this content is missing; they can be run."""

    __test__ = False


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a change stands after a decision.

    Attributes:
        approvals: given so far by different people.
        needed: how many there have to be.
    """

    change: Change
    approvals: int
    needed: int

    @property
    def missing(self) -> int:
        """How many more people must accept."""
        return max(self.needed - self.approvals, 1) if self.change.state == "review" else 0


@dataclass(frozen=True, slots=True)
class Accepting:
    """What a person says beside yes.

    Args:
        expect: the beginning of the digest of what they read; None when it was not given.
        reason: why, which a flagged secret, something unchecked and missing tests need.
        no_test: accept without the tests.
        branch: the branch to make; "" for the change's own.
        committer: name and mail address of the person, for the commit.
        sign: sign the commit as the account's own git does.
        draft_pr: make a draft pull request on GitHub of it as well (`pull_requests.publish`).
        into: the branch there that it is proposed for; "" for the usual one.
    """

    committer: tuple[str, str]
    expect: str | None = None
    reason: str = ""
    no_test: bool = False
    branch: str = ""
    sign: bool = False
    draft_pr: bool = False
    into: str = ""


def accept(uid: str, person: Person, words: Accepting) -> Standing:
    """One person's yes. With the last one that is needed the change goes on to land: see `land`.

    Raises:
        TestsNeeded: the operator's tests were not run on this content.
        Refusal: it is not (any more) what the person read, it was decided already, or they may
            not decide. Nothing is changed then.
    """
    change = _found(uid)
    if change.state == Change.State.LANDING and change.attempt is not None:
        _check_expected(change, change.attempt, words.expect)
        return _standing(change)  # decided; whoever is here may finish it
    if (proposed := pull_requests.of(change)) is not None and proposed.is_unfinished:
        return _standing(change)  # accepted and here; whoever is here may go on with it
    attempt = _reviewed(change)
    said = rules.of(change.repository.uid)
    _check_read(change, attempt, words.expect)
    _check_reason(attempt, words.reason)
    policy = policy_of(attempt, said)
    _check_person(change, policy, person)
    goal = None
    if words.draft_pr:
        goal = pull_requests.checked(change, attempt, branch=words.branch, into=words.into)
    tests = _check_tests(attempt, said, words)  # last: whoever is told they are missing runs them
    with transaction.atomic():
        change = _locked(uid, attempt)
        write_down(
            subject_of(change), attempt.digest, Decision.Verdict.APPROVE, person, words.reason,
            what=str(change), attempt=attempt.number, tests=tests, no_test=words.no_test,
        )  # fmt: skip
        decisions = list(Decision.objects.filter(subject=subject_of(change)))
        if _stands(policy, decisions, change, attempt) == "approved":
            names = sorted(approvers(decisions, attempt.digest).values())
            planned = plan(
                change, attempt, approvers=names, committer=words.committer, tests=tests,
                branch=words.branch, sign=words.sign, is_quiet=goal is not None,
            )  # fmt: skip
            if goal is not None:
                planned = pull_requests.planned(planned, goal, change, attempt, tests=tests)
            by = ", ".join(names)[:300]
            if not Change.objects.begin_landing(
                change.pk, attempt.pk, planned.stored(), decided_by=by, reason=words.reason
            ):
                raise _decided(_found(uid))
        change.refresh_from_db()
        given = len(approvers(decisions, attempt.digest))
        return Standing(change, approvals=given, needed=policy.approvals)


def land(uid: str) -> Change:
    """Make the branch of a change that was accepted. Done again after a crash, it ends the same.

    Raises:
        Refusal: it cannot land so, and is in review again; or nothing is to land.
        HostRefusal, GitError: git could not now; it is still to land.
    """
    change = _found(uid)
    if change.state == Change.State.ACCEPTED:
        return change
    if change.state != Change.State.LANDING or change.attempt is None:
        raise Refusal(f"{change} is {change.state}: there is nothing to land")
    planned, attempt = restored(change.landing), change.attempt
    store = attempts.kept_store(change.repository)
    try:
        _check_intact(change, attempt)
        commit = landing.land(
            Path(change.repository.path), attempt.base_commit, attempt.tree, store,
            message=planned.message,
            author=planned.signature(planned.author),
            committer=planned.signature(planned.committer),
            branch=planned.branch,
            sign=planned.sign,
            before=earlier(planned, attempt),
        )  # fmt: skip
    except HostRefusal:
        raise
    except Refusal as exc:
        with transaction.atomic():
            if Change.objects.undo_landing(change.pk, str(exc)):
                audit.record_policy("change.return", subject_of(change), why=str(exc))
        raise
    with transaction.atomic():
        if Change.objects.finish_landing(change.pk, commit):
            pull_requests.write_down(change, planned)
            audit.record_policy(
                "change.land", subject_of(change), sha256=attempt.digest, commit=commit,
                branch=planned.branch,
            )  # fmt: skip
    change.refresh_from_db()
    return change


def reject(uid: str, person: Person, *, expect: str | None = None, reason: str) -> Standing:
    """One person's no, which is enough. Raises Refusal as `accept` does."""
    change = _found(uid)
    attempt = _reviewed(change)
    if not reason.strip():
        raise Refusal("a rejection needs a --reason: who asked for the change will ask")
    _check_expected(change, attempt, expect)
    with transaction.atomic():
        change = _locked(uid, attempt)
        write_down(
            subject_of(change), attempt.digest, Decision.Verdict.REJECT, person, reason,
            what=str(change), attempt=attempt.number,
        )  # fmt: skip
        facts = {"decided_by": person.name[:300], "reason": reason}
        if not Change.objects.reject(change.pk, attempt.pk, **facts):
            raise _decided(_found(uid))
    change.refresh_from_db()
    return Standing(change, approvals=0, needed=0)


def revise(uid: str, person: Person, task: str, *, owner: str, lease_s: float) -> Change:
    """Begin another attempt; the one that is reviewed stays until there is a better one.

    Args:
        owner: the process that makes it, which holds the change from now on.
    """
    if not task.strip():
        raise Refusal("a revision needs a --task: what is to be different")
    change = _found(uid)
    _reviewed(change)
    with transaction.atomic():
        if not Change.objects.claim(change.pk, owner, lease_s, revision=True):
            raise _decided(_found(uid))
        who = {"actor": person.user} if person.user is not None else {}
        audit.record(REVISED, f"change:{change.uid}", **who, task=task[:2000], by=person.account)
    change.refresh_from_db()
    return change


def subject_of(change: Change) -> str:
    """What a decision names: the change, and the round when an earlier landing came to nothing."""
    later = f"/{change.round}" if change.round > 1 else ""
    return f"change:{change.uid}{later}"


def policy_of(attempt: Attempt, said: Rules) -> ApprovalPolicy:
    """Who has to accept: by the operator's rules, this installation's, and what was found."""
    second = attempt.flags.filter(needs_second_person=True).exists()
    return ApprovalPolicy(
        approvals=said.approvals,
        exclude_author=said.exclude_author or four_eyes.is_on() or second,
    )


def authors_of(change: Change) -> frozenset[int]:
    """The site users who asked for the change, or for one of its revisions."""
    asked = AuditEvent.objects.filter(action=REVISED, subject=f"change:{change.uid}")
    users: set[int | None] = {each.actor_id for each in asked} | {change.requested_by_id}
    accounts = {each.account for each in asked} | {change.requested_as}
    mapped = TerminalAccount.objects.filter(account__in=accounts - {""})
    users |= set(mapped.values_list("user", flat=True))
    return frozenset(user for user in users if user is not None)


def tests_of(attempt: Attempt, command: str) -> TestRun | None:
    """The last answer of this command on exactly this content."""
    return TestRun.objects.last_of(attempt.digest, command)


def _found(uid: str) -> Change:
    change = Change.objects.select_related("repository", "attempt").filter(uid=uid).first()
    if change is None:
        raise Refusal(f"there is no change {uid}; sanduk change list shows them")
    return change


def _reviewed(change: Change) -> Attempt:
    if change.state != Change.State.REVIEW or change.attempt is None:
        raise _decided(change)
    return change.attempt


def _locked(uid: str, attempt: Attempt) -> Change:
    """The change, which nobody else decides meanwhile (SQLite's transactions see to it alone)."""
    change = (
        Change.objects.select_for_update(of=("self",)).select_related("repository").get(uid=uid)
    )
    if change.state != Change.State.REVIEW:
        raise _decided(change)
    if change.attempt_id != attempt.pk:
        raise Refusal(f"{change} has another attempt by now; read that one")
    return change


def _decided(change: Change) -> Refusal:
    state = change.state
    if state in ("queued", "running"):
        return Refusal(f"{change} is {state}: there is nothing to decide on yet")
    if state in ("failed", "unchanged"):
        return Refusal(f"{change} is {state}: there is nothing to decide on")
    by = f" by {change.decided_by}" if change.decided_by else ""
    when = f" at {change.decided_at:%Y-%m-%d %H:%M:%S} UTC" if change.decided_at else ""
    what = "rejected" if state == Change.State.REJECTED else "accepted"
    return Refusal(f"{change} was already {what}{by}{when}; a decision is final")


def _check_expected(change: Change, attempt: Attempt, expect: str | None) -> None:
    again = f"sanduk change show {change.uid}"
    check_expected(attempt.digest, expect, what=str(change), again=again)


def _check_read(change: Change, attempt: Attempt, expect: str | None) -> None:
    _check_expected(change, attempt, expect)
    _check_intact(change, attempt)


def _check_intact(change: Change, attempt: Attempt) -> None:
    store = attempts.kept_store(change.repository)
    try:
        intact = attempts.is_intact(attempt, store)
    except GitError as exc:
        raise Refusal(f"what {change} holds cannot be read any more: {exc}") from None
    if not intact:
        raise Refusal(f"{change} is not what came back: its digest does not fit the store")


def _check_tests(attempt: Attempt, said: Rules, words: Accepting) -> str:
    """What is known of the tests, in words; Refusal when that is not enough."""
    if words.no_test and not words.reason.strip():
        raise Refusal("--no-test needs a --reason, which is kept")
    if not said.test_command:
        return _by_hand(attempt, words)
    last = tests_of(attempt, said.test_command)
    if last is not None and last.outcome == TestRun.Outcome.PASSED:
        return "passed"
    known = f"{last.outcome.replace('_', ' ')}" if last is not None else "not run"
    if words.no_test:
        return f"{known}; accepted without them"
    if last is None or last.outcome == TestRun.Outcome.NOT_RUN:
        raise TestsNeeded(
            "the tests were not run on exactly this content: sanduk change test, or --no-test "
            "with a --reason"
        )
    raise Refusal(
        f"the tests on exactly this content: {known}; sanduk change revise, or --no-test with a "
        "--reason"
    )


def _by_hand(attempt: Attempt, words: Accepting) -> str:
    """What is known where the operator names no tests: somebody may have run some."""
    ended = TestRun.objects.filter(digest=attempt.digest).exclude(outcome="")
    last = ended.order_by("-ended_at", "-pk").first()
    if last is None:
        return "none are named for this repository"
    outcome = last.outcome.replace("_", " ")
    if last.outcome != TestRun.Outcome.PASSED and not words.reason.strip():
        raise Refusal(
            f"the last tests on exactly this content, run by hand: {outcome}; letting it pass "
            "needs a --reason"
        )
    return f"none are named for this repository; by hand, {outcome}"


def _check_reason(attempt: Attempt, reason: str) -> None:
    if reason.strip():
        return
    # not for a name that is about secrets, nor in a test: alarms for nothing teach to say anything
    weighty = Q(severity="high") | Q(severity="medium", line__gt=0)
    secret = attempt.flags.filter(weighty, category="secret").first()
    if secret is not None:
        where = secret.path or "the change"
        line = f" line {secret.line}" if secret.line else ""
        raise Refusal(
            f"it may hold a secret ({where}{line}: {secret.reason}); letting it pass needs a "
            "--reason"
        )
    if attempt.could_not_check:
        many = len(attempt.could_not_check)
        raise Refusal(
            f"{many} things could not be checked, first {attempt.could_not_check[0]}; letting "
            "them pass needs a --reason"
        )


def _check_person(change: Change, policy: ApprovalPolicy, person: Person) -> None:
    authors = authors_of(change)
    if policy.may_decide(user_id=person.user_id, authors=authors):
        return
    if person.user is None:
        why = "a second person" if policy.exclude_author else f"{policy.approvals} people"
        raise Refusal(
            f"{change} is for {why} to accept, and the account {person.account} is mapped to no "
            f"site user: sanduk user map {person.account} USER"
        )
    raise Refusal(f"{person.name} asked for {change}, and a second person has to accept it")


def _stands(
    policy: ApprovalPolicy, decisions: list[Decision], change: Change, attempt: Attempt
) -> str:
    return policy.standing(
        decisions,
        digest=attempt.digest,
        authors=authors_of(change),
        appeared_at=attempt.created_at,
        now=clock.now(),
    )


def _standing(change: Change) -> Standing:
    decisions = Decision.objects.filter(subject=subject_of(change))
    digest = change.attempt.digest if change.attempt is not None else ""
    given = len(approvers(decisions, digest))
    return Standing(change, approvals=given, needed=given)
