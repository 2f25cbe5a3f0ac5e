"""What will land, word for word, settled when it is decided: done again, it is the same commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from changes.landing import Person as Signature
from changes.landing import message_of
from changes.models import Attempt, Change
from runs import clock

_BODY = 4000  # characters of the task
_SUBJECT = 72


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be asked of GitHub once the branch is there.

    Args:
        site: its address, as "https://github.com".
        where: the repository on it, owner/name.
        into: the branch it is proposed for.
    """

    site: str
    where: str
    into: str
    title: str
    body: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Args:
    branch: the name of the branch that is made.
    author, committer: names and mail addresses; the agent, and the person who decided.
    at: seconds since the epoch, of both.
    sign: sign as the account's own git would.
    proposal: the pull request that is to follow.
    """

    branch: str
    message: str
    author: tuple[str, str]
    committer: tuple[str, str]
    at: int
    sign: bool = False
    before: tuple[str, ...] = ()
    proposal: Proposal | None = None

    def stored(self) -> dict[str, Any]:
        kept: dict[str, Any] = msgspec.to_builtins(self)
        return kept

    def signature(self, who: tuple[str, str]) -> Signature:
        return Signature(name=who[0], email=who[1], at=self.at)


def restored(stored: dict[str, Any]) -> Plan:
    """The plan in a change's row. Raises msgspec.ValidationError."""
    return msgspec.convert(stored, Plan)


def branch_of(change: Change) -> str:
    """The branch a change lands on, unless another is asked for: a fresh one."""
    return f"sanduk/{change.uid}"


def plan(
    change: Change,
    attempt: Attempt,
    *,
    approvers: Sequence[str],
    committer: tuple[str, str],
    branch: str = "",
    tests: str,
    sign: bool = False,
) -> Plan:
    """Args:
    approvers: who accepted, by name.
    tests: what is known of the tests, in words.
    """
    agent = attempt.agent or "agent"
    word = "".join(c if c.isalnum() or c in "._-" else "-" for c in agent)
    trailers = [
        ("Sanduk-Change", change.uid),
        ("Sanduk-Agent", agent),
        *([("Sanduk-Model", attempt.model)] if attempt.model else []),
        ("Sanduk-Digest", attempt.digest),
        ("Sanduk-Tests", tests),
        *(("Sanduk-Approved-By", name) for name in approvers),
    ]
    subject = (change.task.strip().splitlines() or [""])[0]
    body = change.task.strip() if change.task.strip() != subject or len(subject) > _SUBJECT else ""
    return Plan(
        branch=branch or branch_of(change),
        message=message_of(subject, body[:_BODY], trailers),
        author=(agent, f"{word}@agents.invalid"),
        committer=committer,
        at=int(clock.now().timestamp()),
        sign=sign,
    )
