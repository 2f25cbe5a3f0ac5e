"""Whether two results go together: by really merging their trees, never by comparing names."""

from __future__ import annotations

from changes.git import line
from changes.store import Store, object_id

_LIMIT = 64 << 20
_NOBODY = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "sanduk"), ("EMAIL", ""), ("DATE", "@0 +0000"))
}


def against(store: Store, base: str, tree: str, other: str) -> tuple[bytes, ...]:
    """The paths at which a merge of two results of one base needs a person.

    Args:
        base: what both started from; a commit, or a tree.
        tree: one result.
        other: the other one: a tree, or a commit such as the branch's present head.
    Raises:
        GitError: something of it is not in the store.
    """
    if store.tree_of(other) == store.tree_of(tree):
        return ()
    root = _commit(store, store.tree_of(base))
    sides = [_commit(store, store.tree_of(one), parent=root) for one in (tree, other)]
    said = store.git(
        "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", *sides,
        codes=(0, 1), limit_bytes=_LIMIT,
    )  # fmt: skip
    result, *paths = said.split(b"\0")
    object_id(result.decode(errors="replace"))
    return tuple(sorted({path for path in paths if path}))


def _commit(store: Store, tree: str, parent: str | None = None) -> str:
    """A commit of no history: a merge has to see nothing but the three trees."""
    above = () if parent is None else ("-p", object_id(parent))
    return line(store.git("commit-tree", object_id(tree), *above, env=_NOBODY, stdin=b"merge\n"))
