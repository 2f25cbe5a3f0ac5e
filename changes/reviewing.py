"""What a person should see before they decide on a change, beside the difference itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from changes import gate, pending, rules
from changes.git import GitError
from changes.models import Attempt, Change, RiskFlag, TestRun
from changes.own_paths import spelled
from changes.pending import Conflict
from changes.rules import Rules
from runs.models import Decision
from runs.refusal import HostRefusal, Refusal
from runs.verdicts import Person, approvers
from runs.visible import visible

OTHERS = 12  # waiting changes of the repository that one is merged with for its page
PATHS = 20  # of one conflict that are named
PAIRS = 45  # of a batch that are merged for its page


@dataclass(slots=True)
class Conflicts:
    """What it gets in the way of.

    Attributes:
        head: paths at which the branch as it is now needs a person.
        others: waiting changes of the repository that it cannot land beside.
        unchecked: why something is not known, a sentence each.
    """

    head: list[str] = field(default_factory=list)
    others: list[tuple[Change, list[str]]] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)


def conflicts_of(change: Change) -> Conflicts:
    """By real merges, of as many others as a page has the time for."""
    found = Conflicts()
    try:
        found.head = told(pending.with_head(change))
    except (Refusal, HostRefusal, GitError, OSError) as exc:
        found.unchecked.append(f"whether it fits the branch as it is now: {exc}")
    try:
        others = pending.with_waiting(change, most=OTHERS)
        found.others = [(each.change, told(each.paths)) for each in others]
        if (many := pending.others_waiting(change).count()) > OTHERS:
            more = many - OTHERS
            found.unchecked.append(
                f"whether it fits {more:,} more waiting changes; sanduk change show looks at all"
            )
    except (HostRefusal, GitError, OSError) as exc:
        found.unchecked.append(f"whether it fits the other waiting changes: {exc}")
    return found


def between(changes: Sequence[Change]) -> tuple[list[tuple[Change, Conflict]], list[str]]:
    """Which of these waiting changes get in each other's way, and what is not known."""
    waiting = [each for each in changes if each.state == Change.State.REVIEW]
    found: list[tuple[Change, Conflict]] = []
    unchecked: list[str] = []
    pairs = [(one, two) for at, one in enumerate(waiting) for two in waiting[at + 1 :]]
    for one, two in pairs[:PAIRS]:
        try:
            if paths := pending.between(one, two):
                found.append((one, Conflict(two, paths)))
        except (HostRefusal, GitError, OSError) as exc:
            unchecked.append(f"change {one.uid} with change {two.uid}: {exc}")
    if len(pairs) > PAIRS:
        unchecked.append(f"{len(pairs) - PAIRS:,} more pairs: each change's own page looks at it")
    return found, unchecked


@dataclass(slots=True)
class Verdicts:
    """Where a decision stands, for one person.

    Attributes:
        trouble: why nothing can be accepted at all; "" where it can.
        may_accept: this person's acceptance would count, and is not given yet.
        has_accepted: it is given.
        tests: "", or "passed", "failed", "timed_out", "not_run", "missing", "running".
    """

    trouble: str = ""
    may_accept: bool = False
    has_accepted: bool = False
    excludes_author: bool = False
    needed: int = 1
    given: int = 0
    tests: str = ""
    command: str = ""

    @property
    def needs_no_test(self) -> bool:
        """The tests that the operator names are not green."""
        return bool(self.command) and self.tests != "passed"


def verdicts(change: Change, attempt: Attempt, person: Person) -> Verdicts:
    try:
        said = rules.of(change.repository.uid)
    except Refusal as exc:
        return Verdicts(trouble=f"the operator's rules for it cannot be read: {exc}")
    policy = gate.policy_of(attempt, said)
    decisions = Decision.objects.filter(subject=gate.subject_of(change)).select_related("actor")
    given = approvers(decisions, attempt.digest)
    has_accepted = person.user_id in given
    may = policy.may_decide(user_id=person.user_id, authors=gate.authors_of(change))
    return Verdicts(
        may_accept=may and not has_accepted,
        has_accepted=has_accepted,
        excludes_author=policy.exclude_author,
        needed=policy.approvals,
        given=len(given),
        tests=_tests(attempt, said),
        command=said.test_command,
    )


def needs_reason(attempt: Attempt, flags: Sequence[RiskFlag]) -> bool:
    """Whether the gate takes no acceptance without a reason."""
    weighty = any(
        flag.category == "secret"
        and (flag.severity == "high" or (flag.severity == "medium" and flag.line > 0))
        for flag in flags
    )
    return weighty or bool(attempt.could_not_check)


def standing(change: Change) -> list[str]:
    """Who decided what, a line each, earlier rounds among them."""
    lines = []
    subject = f"change:{change.uid}"
    every = Decision.objects.filter(subject__startswith=subject).select_related("actor")
    for each in every:
        if each.subject not in (subject, *(f"{subject}/{n}" for n in range(2, change.round + 1))):
            continue
        who = each.actor.get_username() if each.actor else each.account
        why = f": {visible(each.reason)}" if each.reason else ""
        verb = "accepted" if each.verdict == Decision.Verdict.APPROVE else "rejected"
        lines.append(f"{verb} by {visible(who)} {each.at:%Y-%m-%d %H:%M:%S} UTC ({each.via}){why}")
    return lines


def _tests(attempt: Attempt, said: Rules) -> str:
    if not said.test_command:
        return ""
    last = gate.tests_of(attempt, said.test_command)
    same = TestRun.objects.filter(digest=attempt.digest, command=said.test_command)
    if same.filter(outcome="").exists():
        return "running"
    return last.outcome if last is not None else "missing"


def told(paths: Sequence[bytes]) -> list[str]:
    """Some paths of a conflict, in words."""
    more = [f"{len(paths) - PATHS:,} more"] if len(paths) > PATHS else []
    return [*(spelled(path) for path in paths[:PATHS]), *more]
