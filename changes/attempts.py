"""From a result in the store to an attempt a person can decide on: list, patch, digest, flags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.conf import settings
from django.db import transaction

from changes import patches, risks, rules, series_risks
from changes.flag import Flag
from changes.models import Attempt, Change, Repository, RiskFlag
from changes.own_paths import spelled
from changes.patches import ChangedPath
from changes.results import Results, mismatch
from changes.series import Series, protect
from changes.store import Store, opened, place
from changes.tree import Result
from runs.models import Run

_LISTED = 5000  # paths of one kind that a row keeps
_FORMATS = {40: "sha1", 64: "sha256"}


class Lost(Exception):
    """This process does not hold the change any more: somebody ended it meanwhile."""


def store_of(repository: Repository, commit: str) -> Store:
    """The store of a repository; `commit` is one of its, which tells the kind of its ids."""
    home = settings.SANDUK_HOME
    return opened(place(home / "repos", repository.uid), object_format=_FORMATS[len(commit)])


def kept_store(repository: Repository) -> Store:
    """The store that an attempt of the repository was written to: there, or nothing can be read."""
    return Store(place(settings.SANDUK_HOME / "repos", repository.uid))


def write(
    change: Change,
    owner: str,
    base_commit: str,
    result: Result,
    *,
    task: str,
    run: Run | None = None,
    results: Results | None = None,
    series: Series | None = None,
    unread: Sequence[tuple[str, str]] = (),
    beside: Callable[[Attempt], None] = lambda attempt: None,
) -> Attempt | None:
    """Keep what came back and put it before a person; None when nothing is different.

    Args:
        owner: who holds the change's lease.
        result: `changes.tree.read` of what the agent left.
        task: what this attempt was asked for.
        results: the agent's own account (`changes.results`); commentary only.
        series: its commits, where they are to be kept.
        unread: what it left for a person that could not be read, each with why.
        beside: writes what belongs to the attempt, in the transaction that shows it to a person.
    Raises:
        Lost: the lease is somebody else's.
        Refusal: the operator's rules of the repository cannot be read.
        GitError: the store cannot be read.
    """
    store = store_of(change.repository, base_commit)
    base_tree = store.tree_of(base_commit)
    if result.tree == base_tree:
        if not Change.objects.give_up(change.pk, owner, "unchanged", "nothing is different"):
            raise Lost
        return None
    changed = patches.changed_paths(store, base_tree, result.tree)
    patch = patches.patch(store, base_tree, result.tree)
    found = risks.flags(
        store, base_tree, result.tree, changed, rules.of(change.repository.uid),
        also=mismatch(results, changed),
    )  # fmt: skip
    number = Attempt.objects.filter(change=change).count() + 1
    store.keep(f"attempts/{change.uid}/{number}", result.tree)
    kept = series.pairs if series is not None else []
    commits: list[dict[str, Any]] = []
    if series is not None and kept:
        protect(store, f"series/{change.uid}/{number}", series.commits)
        said = rules.of(change.repository.uid)
        looked = series_risks.look(store, base_tree, series.commits, found, changed, said)
        found, commits = looked.findings, looked.commits
    with transaction.atomic():
        attempt: Attempt = Attempt.objects.create(
            change=change,
            number=number,
            task=task,
            run=run,
            agent=change.agent,
            model=change.model,
            base_commit=base_commit,
            base_tree=base_tree,
            tree=result.tree,
            digest=patches.digest_of(base_commit, result.tree, patch, kept),
            patch_bytes=len(patch),
            results=results.stored() if results is not None else {},
            **_counts(changed),
            commits=commits,
            commits_note=series.note if series is not None else "",
            **_left_out(result, series, unread),
            could_not_check=[*found.could_not_check, *_unlisted(result)],
            lines_scanned=found.lines_scanned,
        )
        _keep_flags(attempt, found.flags)
        beside(attempt)
        if not Change.objects.present(change.pk, owner, attempt):
            raise Lost
    return attempt


def is_intact(attempt: Attempt, store: Store) -> bool:
    """Whether the store still holds exactly what was reviewed. Raises GitError."""
    patch = patches.patch(store, attempt.base_tree, attempt.tree)
    digest: str = attempt.digest
    series = attempt.series
    if series and series[-1][0] != attempt.tree:
        return False
    return patches.digest_of(attempt.base_commit, attempt.tree, patch, series) == digest


def _keep_flags(attempt: Attempt, found: Iterable[Flag]) -> None:
    RiskFlag.objects.bulk_create(
        RiskFlag(
            attempt=attempt,
            category=flag.category,
            severity=flag.severity,
            path=spelled(flag.path),
            line=flag.line,
            reason=flag.reason,
            needs_second_person=flag.needs_second_person,
            commit=flag.commit,
        )
        for flag in found
    )


def _counts(changed: Sequence[ChangedPath]) -> dict[str, int]:
    return {
        "files": len(changed),
        "added_lines": sum(each.added_lines for each in changed),
        "deleted_lines": sum(each.deleted_lines for each in changed),
    }


def _left_out(
    result: Result, series: Series | None, unread: Iterable[tuple[str, str]]
) -> dict[str, Any]:
    refused = [*result.refused]
    if series is not None:
        told = {each.path for each in result.refused}
        refused += [each for each in series.refused if each.path not in told]
    return {
        "ignored_created": _listed(
            {"path": spelled(each.path), "files": each.files} for each in result.ignored_created
        ),
        "refused": _listed(
            [
                *({"path": path, "reason": reason} for path, reason in unread),
                *({"path": spelled(each.path), "reason": each.reason} for each in refused),
            ]
        ),
    }


def _listed(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return list(entries)[:_LISTED]


def _unlisted(result: Result) -> list[str]:
    """What the row has no room for, so that a short list never passes for the whole."""
    return [
        f"{len(entries) - _LISTED:,} more paths that were {what}"
        for entries, what in ((result.ignored_created, "ignored"), (result.refused, "refused"))
        if len(entries) > _LISTED
    ]
