"""What will land, word for word, settled when it is decided: done again, it is the same commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from changes import pull_request_text
from changes.landing import Person as Signature
from changes.landing import message_of
from changes.models import Attempt, Change
from runs import clock
from runs.refusal import Refusal

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
    message: of its last commit.
    before: those of the commits before it, where the agent's own are kept.
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


def earlier(planned: Plan, attempt: Attempt) -> list[tuple[str, str]]:
    """Tree and message of each commit before the last. Raises Refusal: they do not fit."""
    trees = [tree for tree, _ in attempt.series[:-1]]
    if len(trees) != len(planned.before):
        raise Refusal("the commits that were decided on are not those that came back")
    return list(zip(trees, planned.before, strict=True))


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
    is_quiet: bool = False,
) -> Plan:
    """Args:
    approvers: who accepted, by name.
    tests: what is known of the tests, in words.
    is_quiet: no word of the agent's may act where the commits are pushed to.
    """
    agent = attempt.agent or "agent"
    word = "".join(c if c.isalnum() or c in "._-" else "-" for c in agent)
    facts = [
        ("Sanduk-Change", change.uid),
        ("Sanduk-Agent", agent),
        *([("Sanduk-Model", attempt.model)] if attempt.model else []),
        ("Sanduk-Digest", attempt.digest),
    ]
    approved = [("Sanduk-Approved-By", name) for name in approvers]
    messages = []
    words = _words(change, attempt, is_quiet=is_quiet)
    for number, (subject, body) in enumerate(words, 1):
        place = [("Sanduk-Commit", f"{number} of {len(words)}")] if len(words) > 1 else []
        # the tests ran on the last tree alone
        tested = [("Sanduk-Tests", tests)] if number == len(words) else []
        messages.append(message_of(subject, body, [*facts, *place, *tested, *approved]))
    return Plan(
        branch=branch or branch_of(change),
        message=messages[-1],
        before=tuple(messages[:-1]),
        author=(agent, f"{word}@agents.invalid"),
        committer=committer,
        at=int(clock.now().timestamp()),
        sign=sign,
    )


def _words(change: Change, attempt: Attempt, *, is_quiet: bool) -> list[tuple[str, str]]:
    """Subject and text of each commit: the agent's own, and the task for what it has none for."""
    task = change.task.strip()
    subject = (task.splitlines() or [""])[0]
    asked = (subject, task[:_BODY] if task != subject or len(subject) > _SUBJECT else "")
    own = [
        pull_request_text.quiet(message) if is_quiet else message for _, message in attempt.series
    ]
    return [_own(message) if message else asked for message in own] or [asked]


def _own(message: str) -> tuple[str, str]:
    subject, _, rest = message.partition("\n")
    return (subject, message) if len(subject) > _SUBJECT else (subject, rest.strip())
