"""What a waiting change gets in the way of: others of its repository, and the branch as it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from changes import attempts, bundle, conflicts
from changes.models import Attempt, Change


@dataclass(frozen=True, slots=True)
class Conflict:
    """Another waiting change, and the paths at which a person would have to merge."""

    change: Change
    paths: tuple[bytes, ...]


def others_waiting(change: Change) -> Any:
    """Those that wait in the same repository beside this one."""
    return Change.objects.waiting(change.repository).exclude(pk=change.pk)


def with_waiting(change: Change, *, most: int | None = None) -> list[Conflict]:
    """Those that wait in the same repository and cannot land beside this one as they are.

    Args:
        most: look at the newest of them only; None for all.

    Raises GitError: a tree of them cannot be read.
    """
    attempt = change.attempt
    if attempt is None:
        return []
    found = []
    for other in others_waiting(change).select_related("attempt")[:most]:
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
    store = attempts.kept_store(change.repository)
    now = bundle.bring(Path(change.repository.path), change.base_ref or None, store)
    if now == attempt.base_commit:
        return ()
    return _between(change, attempt, now)


def between(one: Change, two: Change) -> tuple[bytes, ...]:
    """The paths at which two waiting changes of one repository and base need a person.

    Raises GitError: a tree of them cannot be read.
    """
    if one.attempt is None or two.attempt is None:
        return ()
    return _between(one, one.attempt, two.attempt.tree)


def _between(change: Change, attempt: Attempt, other: str) -> tuple[bytes, ...]:
    store = attempts.kept_store(change.repository)
    return conflicts.against(store, attempt.base_commit, attempt.tree, other)
