"""What is different between two trees of our own store: the list, the patch and its digest.

Paths are bytes and come NUL-separated from git's plumbing, never out of a patch's text. No
attribute, driver or setting of either tree shapes the output (`changes.store.ATTRIBUTES`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from changes.git import GitError
from changes.store import Store, object_id

Kind = Literal["added", "deleted", "modified", "renamed", "type", "mode"]

PATCH_LIMIT = 512 << 20  # bytes
_LIST_LIMIT = 256 << 20
# pairing every file with every other is quadratic; empty files are no evidence of a rename
_RENAMES = ("--find-renames=50%", "-l400", "--no-rename-empty")
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--full-index")
_SUBMODULES = ("--submodule=short", "--ignore-submodules=none")
_KINDS: dict[str, Kind] = {"A": "added", "D": "deleted", "T": "type", "R": "renamed"}


@dataclass(frozen=True, slots=True)
class ChangedPath:
    """One path that differs.

    Attributes:
        path: where it is in the result; where it was, when it is deleted.
        old_path: where a renamed file was.
        old_mode, new_mode: as git writes them, "100644"; "000000" where there is none.
        old_id, new_id: object ids; "" where there is none.
        binary: git counts no lines in it.
        added_lines, deleted_lines: 0 for a binary.
    """

    path: bytes
    old_path: bytes | None
    kind: Kind
    old_mode: str
    new_mode: str
    old_id: str
    new_id: str
    binary: bool
    added_lines: int
    deleted_lines: int


def changed_paths(store: Store, base_tree: str, tree: str) -> list[ChangedPath]:
    """Every path that differs, in git's order.

    Raises:
        GitError: a tree is not there, or git said what nobody expects.
    """
    said = store.git(
        "diff-tree", "-r", "-z", "--raw", "--numstat", *_RENAMES, *_PLAIN, *_SUBMODULES,
        object_id(base_tree), object_id(tree),
        limit_bytes=_LIST_LIMIT,
    )  # fmt: skip
    words = iter(said.split(b"\0"))
    raw, following = _raw(words)
    counts = dict(_counts(words, following))
    return [_changed(*entry, counts.get(entry[2])) for entry in raw]


def patch(
    store: Store,
    base_tree: str,
    tree: str,
    *,
    paths: Sequence[bytes] = (),
    context: int = 3,
    limit_bytes: int = PATCH_LIMIT,
) -> bytes:
    """The patch from one tree to the other, with binary files whole, as `git apply` takes it.

    Args:
        paths: only these, each taken literally; all without.
        context: lines around a change.
    Raises:
        GitError: it is larger than `limit_bytes`.
    """
    return store.git(
        "diff-tree", "-r", "-p", "--binary", f"-U{context:d}", *_RENAMES, *_PLAIN, *_SUBMODULES,
        "--src-prefix=a/", "--dst-prefix=b/", "--diff-algorithm=myers",
        object_id(base_tree), object_id(tree), "--", *paths,
        limit_bytes=limit_bytes,
    )  # fmt: skip


def digest_of(
    base_commit: str, tree: str, patch: bytes, commits: Sequence[tuple[str, str]] = ()
) -> str:
    """What a decision is bound to: the base, the exact result and the patch that was shown.

    Args:
        commits: tree and message of each commit of a series, the oldest first.
    """
    digest = hashlib.sha256(b"sanduk change 2\n" if commits else b"sanduk change 1\n")
    for part in (object_id(base_commit), object_id(tree), hashlib.sha256(patch).hexdigest()):
        digest.update(f"{part}\n".encode())
    for each, message in commits:
        digest.update(
            f"{object_id(each)} {hashlib.sha256(message.encode()).hexdigest()}\n".encode()
        )
    return digest.hexdigest()


def _raw(words: Iterator[bytes]) -> tuple[list[tuple[list[str], bytes | None, bytes]], bytes]:
    """The raw records, and the first word that is none."""
    found: list[tuple[list[str], bytes | None, bytes]] = []
    for word in words:
        if not word.startswith(b":"):
            return found, word
        fields = word[1:].decode("ascii").split(" ")
        if len(fields) != 5:
            raise GitError(f"git diff-tree said {word!r}")
        first = next(words)
        renamed = fields[4][:1] in ("R", "C")
        found.append((fields, first if renamed else None, next(words) if renamed else first))
    return found, b""


def _counts(words: Iterator[bytes], first: bytes) -> Iterator[tuple[bytes, tuple[bytes, bytes]]]:
    word: bytes | None = first
    while word:
        added, deleted, path = word.split(b"\t", 2)
        if not path:  # a rename: the old name, then the new one
            next(words)
            path = next(words)
        yield path, (added, deleted)
        word = next(words, None)


def _changed(
    fields: list[str], old_path: bytes | None, path: bytes, counted: tuple[bytes, bytes] | None
) -> ChangedPath:
    old_mode, new_mode, old_id, new_id, status = fields
    kind: Kind = _KINDS.get(status[:1], "modified")
    if kind == "modified" and old_id == new_id:
        kind = "mode"
    added, deleted = counted or (b"0", b"0")
    binary = added == b"-"
    return ChangedPath(
        path=path,
        old_path=old_path,
        kind=kind,
        old_mode=old_mode,
        new_mode=new_mode,
        old_id="" if not old_id.strip("0") else old_id,
        new_id="" if not new_id.strip("0") else new_id,
        binary=binary,
        added_lines=0 if binary else int(added),
        deleted_lines=0 if binary else int(deleted),
    )
