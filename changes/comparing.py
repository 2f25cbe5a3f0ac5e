"""What one attempt of a change does otherwise than another one, of the same base.

Two patches on one base differ in exactly the files in which their results do.
"""

from __future__ import annotations

from dataclasses import dataclass

from changes import patches
from changes.models import Attempt
from changes.own_paths import spelled
from changes.patches import ChangedPath
from changes.store import Store
from runs.refusal import Refusal


def earlier_first(one: Attempt, two: Attempt) -> tuple[Attempt, Attempt]:
    """The two in the order in which they came. Raises Refusal when they cannot be compared."""
    if one.pk == two.pk:
        raise Refusal(f"attempt {one.number} differs from itself in nothing; name another one")
    if one.change_id != two.change_id or one.base_commit != two.base_commit:
        raise Refusal("they are no attempts of one change on one base")
    return (one, two) if one.number < two.number else (two, one)


@dataclass(frozen=True, slots=True)
class Compared:
    """What a later attempt does otherwise than an earlier one.

    Attributes:
        changed: the files whose results differ, from the earlier one to the later one.
        later: what the later one changes of the base, by path as it is spelled.
        touched: paths, spelled, that the earlier one changes of the base.
    """

    changed: list[ChangedPath]
    later: dict[str, ChangedPath]
    touched: frozenset[str]

    @property
    def same(self) -> int:
        """How many files the later one changes exactly as the earlier one did."""
        return len(set(self.later) - {spelled(each.path) for each in self.changed})

    def words(self, path: str) -> str:
        """What became of a file that differs."""
        if path not in self.later:
            return "no longer changed"
        return "changed otherwise" if path in self.touched else "not changed before"


def compared(store: Store, earlier: Attempt, later: Attempt) -> Compared:
    """Raises GitError: a tree of them cannot be read (any more)."""
    before = patches.changed_paths(store, earlier.base_tree, earlier.tree)
    after = patches.changed_paths(store, later.base_tree, later.tree)
    return Compared(
        changed=patches.changed_paths(store, earlier.tree, later.tree),
        later={spelled(each.path): each for each in after},
        touched=frozenset(spelled(each.path) for each in before),
    )
