"""A draft pull request of an accepted change: everything that can be known is asked before anybody
decides, and afterwards it goes on from wherever it stopped.

The branch is made here first, as without one. Then this host's git pushes it (`changes.pushing`),
and GitHub is asked for the draft. Every step is written down before and after it: a process that
dies, or an answer that never comes, is found out by looking there, and nothing is made twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from changes import attempts, github, landing_plan, pull_request_text, pushing, remotes, rules
from changes.git import GitError, git
from changes.github import NoAnswer, NotAsked, Site
from changes.github_calls import Refused, Talk
from changes.landing_plan import Plan, Proposal
from changes.models import Attempt, Change, PullRequest
from changes.remotes import There
from changes.repository import find
from changes.store import Store
from runs import audit, locks
from runs.models import AuditEvent
from runs.refusal import HostRefusal, Refusal
from runs.visible import visible

State = PullRequest.State
_PART = 100  # characters of an owner's or a repository's name


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a change is to be proposed: it was asked for there, and can be."""

    site: Site
    where: There
    into: str


def offered(change: Change) -> str:
    """`owner/name` where a draft pull request of it would be made; "" where none can be.

    Nothing but this host is asked.
    """
    try:
        github.token()
        said = rules.of(change.repository.uid)
        return str(remotes.there(Path(change.repository.path), said.remote, github.site()))
    except (Refusal, GitError):
        return ""


def checked(change: Change, attempt: Attempt, *, branch: str = "", into: str = "") -> Goal:
    """Everything a draft pull request needs, before anybody decides; nothing is changed.

    Args:
        branch: the branch that will be made; "" for the change's own.
        into: the branch it is to be proposed for; "" for what the rules say, or the change began
            from, or GitHub's own.

    Raises Refusal, GitError: what is missing, with what mends it.
    """
    said = rules.of(change.repository.uid)
    site, token = github.site(), github.token()
    repository = Path(change.repository.path)
    where = remotes.there(repository, said.remote, site)
    talk = Talk(site, where, token)
    default = talk.repository().default_branch
    into = into or said.pull_request_into or _began_from(change, said.remote) or default
    talk.require_branch(into)
    talk.require_within(attempt.base_commit, into)
    head = branch or landing_plan.branch_of(change)
    if head == into:
        raise Refusal(f"{visible(head)} cannot be proposed for itself: choose another --branch")
    if number := talk.pull_of(head, attempt.base_commit, into):
        raise Refusal(
            f"{where} has pull request {number} of {visible(head)} already: choose another with "
            "--branch"
        )
    store = attempts.kept_store(change.repository)
    there = remotes.address(site, where)
    pushing.try_out(store, attempt.base_commit, site, there, head, token)
    return Goal(site, where, into)


def planned(plan: Plan, goal: Goal, change: Change, attempt: Attempt, *, tests: str) -> Plan:
    """The plan of a landing, with the words of the pull request that is to follow it."""
    trailers = plan.message.rstrip("\n").rpartition("\n\n")[2]
    proposal = Proposal(
        site=goal.site.address,
        where=str(goal.where),
        into=goal.into,
        title=pull_request_text.title(change),
        body=pull_request_text.body(change, attempt, tests=tests, trailers=trailers),
    )
    return msgspec.structs.replace(plan, proposal=proposal)


def write_down(change: Change, plan: Plan) -> None:
    """Keep what is to follow a landing; in its own transaction with it."""
    if (wanted := plan.proposal) is None:
        return
    PullRequest.objects.get_or_create(
        change=change,
        defaults={
            "site": wanted.site, "where": wanted.where, "into": wanted.into, "head": plan.branch,
            "title": wanted.title, "body": wanted.body,
        },
    )  # fmt: skip


def of(change: Change) -> PullRequest | None:
    """What is, or is to be, made of an accepted change on GitHub."""
    if not change.landing.get("proposal"):
        return None
    return PullRequest.objects.filter(change=change).first()


def publish(change: Change) -> PullRequest | None:
    """Go on with the pull request of an accepted change; None where none is wanted.

    Raises:
        Refusal: GitHub, or this host, refuses it; the row says why, and it can be tried again.
        HostRefusal, GitError: it could not be done now, or whether it was is not known.
    """
    row = of(change)
    if row is None or not row.is_unfinished:
        return row
    with locks.held_if_free(f"publish-{change.uid}") as ours:
        if not ours:
            raise HostRefusal(f"another process is making the pull request of {change} now")
        row.refresh_from_db()
        try:
            if row.is_unfinished:
                _go_on(change, row)
        except (Refusal, GitError) as exc:
            PullRequest.objects.stopped(row.pk, str(exc))
            raise
        finally:
            row.refresh_from_db()
    return row


def _go_on(change: Change, row: PullRequest) -> None:
    site, token = github.site(), github.token()
    if site.address != row.site:
        raise HostRefusal(
            f"the pull request was to be on {row.site}, and SANDUK_GITHUB_API names {site.address}"
        )
    owner, _, name = row.where.partition("/")
    talk = Talk(site, There(owner, name), token)
    if row.state == State.WANTED:
        _push(change, row, talk)
    number = talk.pull_of(row.head, change.landed_commit, row.into) or _asked(change, row, talk)
    if PullRequest.objects.step(row.pk, State.OPENED, number=number):
        _audited(change, "change.propose", row, number=number)


def _push(change: Change, row: PullRequest, talk: Talk) -> None:
    store, attempt, commit = (
        attempts.kept_store(change.repository),
        change.attempt,
        change.landed_commit,
    )
    if attempt is None:
        raise Refusal(f"{change} has nothing that could be pushed")
    git_dir = find(Path(change.repository.path)).git_dir
    pushing.bring(store, git_dir, attempt.base_commit, commit)
    _check_commit(change, attempt, store)
    there = remotes.address(talk.site, talk.where)
    pushing.push(store, commit, talk.site, there, row.head, talk.token)
    if (tip := talk.tip(row.head)) != commit:
        raise NoAnswer(
            f"{row.where} says that {visible(row.head)} is at {tip[:12] or 'nothing'}, not at "
            f"{commit[:12]}, which was pushed"
        )
    if PullRequest.objects.step(row.pk, State.PUSHED):
        _audited(change, "change.push", row, commit=commit)
    row.refresh_from_db()


def _asked(change: Change, row: PullRequest, talk: Talk) -> int:
    """Ask for the draft; its number. Before a word goes out the row says that it did."""
    PullRequest.objects.step(row.pk, State.ASKED)
    words = {"head": row.head, "into": row.into, "title": row.title, "body": row.body}
    try:
        return talk.make(**words)
    except NotAsked:
        PullRequest.objects.step(row.pk, State.PUSHED)
        raise
    except NoAnswer as exc:
        raise NoAnswer(
            f"whether the pull request was made is not known ({exc}); the same command looks"
        ) from None
    except Refused:
        # somebody, or an earlier process of ours, may have been faster
        if number := talk.pull_of(row.head, change.landed_commit, row.into):
            return number
        PullRequest.objects.step(row.pk, State.PUSHED)
        raise


def _check_commit(change: Change, attempt: Attempt, store: Store) -> None:
    """What goes out is what was accepted, on the base it was accepted on, and nothing beside it."""
    commit = change.landed_commit
    trees = [tree for tree, _ in attempt.series] or [attempt.tree]
    line = [f"{commit}~{number}^{{tree}}" for number in range(len(trees))]
    said = store.git("rev-parse", *line, f"{commit}~{len(trees)}", codes=(0, 128)).decode()
    many = store.git("rev-list", "--count", commit, f"^{attempt.base_commit}").decode()
    wanted = [*trees[::-1], attempt.base_commit]
    if said.split() != wanted or int(many) != len(trees):
        raise Refusal(f"{commit} is not what was accepted as {change}")


def _began_from(change: Change, remote: str) -> str:
    """The branch a change began from, by its name there; "" where it was none."""
    ref = change.base_ref.removeprefix("refs/heads/")
    if not ref or ref == "HEAD":
        return ""
    git_dir = find(Path(change.repository.path)).git_dir
    for place, name in (("heads", ref), ("remotes", ref)):
        words = ("show-ref", "--verify", "--quiet", f"refs/{place}/{ref}")
        try:
            git(*words, git_dir=git_dir)
        except (GitError, ValueError):
            continue
        if place == "heads":
            return name
        if ref.startswith(f"{remote}/"):
            return ref.removeprefix(f"{remote}/")
    return ""


def _audited(change: Change, action: str, row: PullRequest, **facts: object) -> AuditEvent:
    return audit.record_policy(
        action, f"change:{change.uid}", site=row.site, repository=row.where, branch=row.head,
        **facts,
    )  # fmt: skip
