"""What a waiting change gets in the way of: others of its repository, and the branch as it is."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from changes import attempts, bundle, conflicts
from changes.models import Attempt, Change


@dataclass(frozen=True, slots=True)
class Conflict:
    """Another waiting change, and the paths at which a person would have to merge."""

    change: Change
    paths: tuple[bytes, ...]


def with_waiting(change: Change) -> list[Conflict]:
    """Those that wait in the same repository and cannot land beside this one as they are.

    Raises GitError: a tree of them cannot be read.
    """
    attempt = change.attempt
    if attempt is None:
        return []
    others = Change.objects.waiting(change.repository).exclude(pk=change.pk)
    found = []
    for other in others.select_related("attempt"):
        paths = _between(change, attempt, other.attempt.tree) if other.attempt else ()
        if paths:
            found.append(Conflict(other, paths))
    return found


def with_head(change: Change) -> tuple[bytes, ...]:
    """The paths at which the branch has moved on where this change does something else.

    The branch is the one the change was asked for, or what is checked out.

    Raises:
        Refusal: the branch cannot be read.
        GitError: a tree cannot be read.
    """
    attempt = change.attempt
    if attempt is None:
        return ()
    with tempfile.TemporaryDirectory() as place:
        now = bundle.provide(
            Path(change.repository.path), change.base_ref or None, directory=Path(place)
        )
        if now.base_commit == attempt.base_commit:
            return ()
        store = attempts.store_of(change.repository, attempt.base_commit)
        store.take(now.bundle, now.base_commit, now.shallow)
    return _between(change, attempt, now.base_commit)


def _between(change: Change, attempt: Attempt, other: str) -> tuple[bytes, ...]:
    store = attempts.kept_store(change.repository)
    return conflicts.against(store, attempt.base_commit, attempt.tree, other)
