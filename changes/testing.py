"""The operator's tests on one attempt: base and stored patch, in a fresh box without a network.

Nothing of the agent's clone is there: the files are written from the tree in our own store. What
runs is what the operator of this host says, or the person who asks for it; never the branch.
"""

from __future__ import annotations

from collections.abc import Callable

from changes import rules
from changes.models import Attempt, Change, TestRun
from runs.refusal import Refusal
from runs.verdicts import Person

Tell = Callable[[str], None]


def quiet(text: str) -> None:
    """Tell nobody; everything is in the rows anyway."""


def test(
    uid: str,
    person: Person,
    *,
    command: str = "",  # noqa: PT028 - this is no test of pytest's
    tell: Tell = quiet,  # noqa: PT028
) -> TestRun:
    """Run the tests on the attempt of a change that is looked at, in this process, to their end.

    Args:
        command: what to run, for `/bin/sh`; "": what the operator's rules name.
        tell: is given each line of progress.
    Returns:
        the ended row: `passed`, `failed`, `timed_out`, or `not_run` with the reason.
    Raises:
        Refusal: there is no such change, nothing to test yet, no command, or its rules cannot be
            read. Nothing was written down then.
    """
    change, _attempt = _tested(uid)
    _command(change, command)
    raise Refusal(f"{change} cannot be tested on this host yet")


test.__test__ = False  # type: ignore[attr-defined]  # pytest would collect it by its name


def _tested(uid: str) -> tuple[Change, Attempt]:
    change = Change.objects.select_related("repository", "attempt").filter(uid=uid).first()
    if change is None:
        raise Refusal(f"there is no change {uid}; sanduk change list shows them")
    if change.attempt is None:
        raise Refusal(f"{change} is {change.state}: there is nothing to test")
    return change, change.attempt


def _command(change: Change, asked: str) -> str:
    command = asked.strip() or rules.of(change.repository.uid).test_command.strip()
    if not command:
        raise Refusal(
            f"no tests are named for {change.repository.name}: give --test-cmd, or write "
            f"test_command in {rules.file_of(change.repository.uid)}"
        )
    return command
