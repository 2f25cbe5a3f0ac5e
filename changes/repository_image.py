"""The image that a repository's agents and tests run in: the operator's recipe, kits and set-up.

The set-up runs while the image is built, from lock files of the base commit alone, so that tests
need no network. The operator's file names everything; the branch names nothing.
"""

from __future__ import annotations

from changes.models import Repository
from changes.rules import Rules
from runs.order import Order


def fitted(order: Order, repository: Repository, said: Rules, base_commit: str) -> Order:
    """The order, in the repository's own image.

    What the order itself names (`recipe`, `image`, `containerfile`) comes before what the
    operator's rules say; its kits are added to theirs.

    Args:
        base_commit: is in the repository's store; its lock files go into the image.
    Raises:
        Refusal: a lock file is not in the base commit, or cannot be copied.
        GitError: the store cannot be read.
    """
    raise NotImplementedError
