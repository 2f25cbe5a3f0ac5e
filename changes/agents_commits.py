"""The commits an agent made on the base: for each its tree, and its words made safe to keep."""

from __future__ import annotations

import re
from dataclasses import dataclass

from changes.clone_objects import Unreadable
from changes.git import GitError
from changes.store import Store, object_id
from runs.visible import visible

COMMITS_MAX = 100
_COMMIT_MAX = 1 << 20  # bytes of one commit object
_MESSAGE_MAX = 4000  # characters
_OURS = re.compile(r"(?im)^(?=[ \t]*sanduk-)")


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, as far as anything of it is taken.

    Attributes:
        tree: its id in the scratch store; nothing is known of it yet.
        message: cleaned.
        is_merge: it has more than one parent.
    """

    tree: str
    message: str
    is_merge: bool


def commits_of(scratch: Store, tip: str, base_commit: str) -> list[Commit]:
    """The line of first parents from the base to `tip`, the oldest first.

    No command walks it: what could bend its way (grafts, replacements) is not even looked for.

    Raises:
        Unreadable: it does not come from the base, is too long, or a commit of it is no commit.
    """
    found: list[Commit] = []
    at = tip
    while at != base_commit:
        if len(found) == COMMITS_MAX:
            raise Unreadable(f"it made more than {COMMITS_MAX} commits")
        commit, parents = _read(scratch, at)
        found.append(commit)
        if not parents:
            raise Unreadable("its history does not come from the base commit")
        at = parents[0]
    return found[::-1]


def cleaned(message: str) -> str:
    """An agent's words as they are kept, shown and landed: cut, printable, and no trailer of ours.

    Cleaning them again changes nothing.
    """
    text = message[: _MESSAGE_MAX * 2].replace("\r\n", "\n").replace("\r", "\n")
    lines = [one.rstrip() for one in visible(text, lines=True).strip().split("\n")]
    kept = _OURS.sub("> ", "\n".join(lines))
    return kept[: _MESSAGE_MAX - 1].rstrip() + "…" if len(kept) > _MESSAGE_MAX else kept


def _read(scratch: Store, name: str) -> tuple[Commit, list[str]]:
    try:
        data = scratch.git("cat-file", "commit", object_id(name), limit_bytes=_COMMIT_MAX)
    except GitError as exc:
        raise Unreadable(_why(name, exc)) from None
    head, _, text = data.partition(b"\n\n")
    tree = ""
    parents: list[str] = []
    for number, one in enumerate(head.split(b"\n")):
        key, _, value = one.partition(b" ")
        if key == b"tree" and number == 0:
            tree = value.decode(errors="replace")
        elif key == b"parent" and number == len(parents) + 1:
            parents.append(value.decode(errors="replace"))
    try:
        object_id(tree)
        for each in parents:
            object_id(each)
    except GitError:
        raise Unreadable(f"its commit {name[:12]} is no commit") from None
    message = cleaned(text.decode("utf-8", "replace")) or "(no message)"
    return Commit(tree, message, len(parents) > 1), parents


def _why(name: str, exc: GitError) -> str:
    if exc.code == 128 and (b"Not a valid object" in exc.errors or b"bad file" in exc.errors):
        return f"its commit {name[:12]} is not in its clone: the history was rewritten or cut"
    return f"its commit {name[:12]} cannot be read: {exc}"
