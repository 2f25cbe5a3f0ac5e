"""Accepting as a person means it: the tests where they are missing, the decision, the branch."""

from __future__ import annotations

from changes import gate, pull_requests, testing
from changes.gate import Accepting, TestsNeeded
from changes.git import GitError
from changes.models import Change, TestRun
from changes.testing import Tell, quiet
from runs.refusal import Refusal
from runs.verdicts import Person


def accept(uid: str, person: Person, words: Accepting, tell: Tell = quiet) -> Change:
    """Run the tests if no green of them is there, accept, and make the branch.

    The change stays in `review` where others have to accept too (`gate.policy_of` says how many),
    is `accepted` once the branch is there, and stays `landing` where git could not make it now:
    then the same call finishes it.

    Args:
        tell: is given each line of progress.
    Raises:
        Refusal: the tests are red, timed out or could not be run; or it may not be accepted, as
            `gate.accept` says; or it cannot land so, and is in review again (`gate.land`).
        HostRefusal, GitError: git could not now; it is still to land.
    """
    try:
        standing = gate.accept(uid, person, words)
    except TestsNeeded:
        tested = testing.test(uid, person, tell=tell)
        if tested.outcome != TestRun.Outcome.PASSED:
            raise _red(tested) from None
        standing = gate.accept(uid, person, words)
    if standing.change.state == Change.State.LANDING:
        return gate.land(uid)
    return standing.change


def proposed(change: Change) -> str:
    """Make the draft pull request that an accepted change was accepted for, or go on with it.

    Returns what stood in the way, in words, and is in its row as well; "" for nothing, also where
    none was asked for. The change is accepted and its branch is here, whatever GitHub said.
    """
    try:
        pull_requests.publish(change)
    except (Refusal, GitError) as exc:
        return str(exc)
    return ""


def _red(tested: TestRun) -> Refusal:
    what = tested.outcome.replace("_", " ")
    why = f" ({tested.reason})" if tested.reason else ""
    return Refusal(
        f"the tests on exactly this content: {what}{why}; sanduk change revise, or --no-test "
        "with a --reason"
    )
