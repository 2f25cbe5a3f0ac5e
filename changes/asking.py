"""Asking for a change: everything that can be checked is, before a row of it is there."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from django.db import transaction

from changes import attempts, base, repository_image, rules
from changes.bundle import Provided
from changes.git import GitError
from changes.models import Change, Repository
from changes.models.change import new_uid
from changes.repository import find
from runs import audit, keys
from runs.installation import require_room
from runs.order import Order
from runs.plan import Ground, Plan, make_plan
from runs.refusal import HostRefusal, Refusal
from runs.verdicts import Person

TASK_MAX = 1 << 20  # characters
ASKED = "change.ask"  # in the audit


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is asked for beside the task.

    Args:
        order: every flag of a run. Its task and its directory are set for each attempt.
        base: a branch, a tag or any commit; "" for what is checked out.
        history: how many commits deep the agent sees; None for the base commit alone.
        keep_commits: the agent's own commits land as a series, instead of one commit.
    """

    order: Order
    base: str = ""
    history: int | None = None
    keep_commits: bool = False


def ask(
    path: str,
    task: str,
    *,
    options: Options,
    person: Person,
    kind: str = Change.Kind.TASK,
    batch: str = "",
) -> Change:
    """Check everything, then write the change down as queued, its base kept beside it.

    Args:
        path: a directory in the repository.
        person: who asks.
        kind: `task`, or `shell` for a person's own session.
        batch: the `uid` of the batch it is part of.
    Raises:
        Refusal: the agent, a flag, the key, the task, the repository, its rules or its base is not
            as it must be. There is no row then.
    """
    (change,) = ask_each(path, [task], options=options, person=person, kind=kind, batch=batch)
    return change


def ask_each(
    path: str,
    tasks: list[str],
    *,
    options: Options,
    person: Person,
    kind: str = Change.Kind.TASK,
    batch: str = "",
) -> list[Change]:
    """As `ask`, for several tasks on one base: all of them are written down, or none is."""
    for task in tasks:
        plan = planned(task, options.order)
    if plan.provider is not None:
        keys.provider_key(plan.provider)  # a missing one is told before anything is made
    require_room()
    uids = [new_uid() for _ in tasks]
    repository, provided = _based(path, options, uids)
    try:
        order = _in_its_image(options.order, repository, provided)
        with transaction.atomic():
            return [
                _row(uid, repository, provided, options, planned(task, order), person, kind, batch)
                for uid, task in zip(uids, tasks, strict=True)
            ]
    except BaseException:
        for uid in uids:
            base.forget(uid)
        raise


def planned(task: str, order: Order) -> Plan:
    """The order as the run of an attempt would have it. Raises Refusal when it is none."""
    if len(task) > TASK_MAX:
        raise Refusal(f"the task has {len(task):,} characters; at most {TASK_MAX:,} fit")
    with tempfile.TemporaryDirectory() as nowhere:
        return make_plan(_as_asked(task, order), ground=Ground(Path(nowhere)))


def _as_asked(task: str, order: Order) -> Order:
    return msgspec.structs.replace(
        order, task=task, workdir="", report_instruction=False, keep=False
    )


def _in_its_image(order: Order, repository: Repository, provided: Provided) -> Order:
    """The order in the repository's own image, as far as that can be told without building it.

    Raises Refusal when it cannot be made.
    """
    said = rules.of(repository.uid)
    its_own = (said.recipe, said.kits, said.set_up, said.lock_files, said.browser is not None)
    if not any(its_own):
        return order
    try:
        store = attempts.store_of(repository, provided.base_commit)
        store.take(provided.bundle, provided.base_commit, provided.shallow)
        return repository_image.fitted(order, repository, said, provided.base_commit)
    except GitError as exc:
        raise HostRefusal(f"the store of {repository} cannot be used: {exc}") from None


def _based(path: str, options: Options, uids: list[str]) -> tuple[Repository, Provided]:
    """The repository's row and its base, kept for each of these changes."""
    top = find(Path(path)).top().resolve()
    repository = Repository.objects.at(str(top))
    rules.of(repository.uid)  # what cannot be read would only be told at the gate
    provided = base.keep(uids[0], Path(path), options.base, options.history)
    try:
        attempts.store_of(repository, provided.base_commit)
        for uid in uids[1:]:
            base.share(uid, uids[0])
    except (GitError, Refusal) as exc:
        for uid in uids:
            base.forget(uid)
        if isinstance(exc, Refusal):
            raise
        raise HostRefusal(f"the store of {repository} cannot be used: {exc}") from None
    return repository, provided


def _row(
    uid: str,
    repository: Repository,
    provided: Provided,
    options: Options,
    plan: Plan,
    person: Person,
    kind: str,
    batch: str,
) -> Change:
    """Its order is as it was asked for: each attempt goes by the rules of its own time."""
    change: Change = Change.objects.create(
        uid=uid,
        repository=repository,
        kind=kind,
        task=plan.order.task,
        batch=batch,
        base_ref=options.base or provided.branch,
        base_commit=provided.base_commit,
        history=options.history,
        keep_commits=options.keep_commits,
        agent=plan.agent.name if ":" not in plan.order.agent else plan.order.agent,
        model=_model(plan),
        order=_as_asked(plan.order.task, options.order).stored(),
        requested_by=person.user,
        requested_as="" if person.user is not None else person.account,
    )
    who: dict[str, Any] = {"actor": person.user} if person.user is not None else {}
    audit.record(ASKED, f"change:{uid}", **who, repository=repository.uid, kind=kind)
    return change


def _model(plan: Plan) -> str:
    return plan.request.model or (plan.provider.default_model if plan.provider else "") or ""
