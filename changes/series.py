"""The agent's commits, built anew in our own store: a series that lands instead of one commit.

Of a commit its tree's content and its words are taken, nothing else. Each tree goes by the rules
of the whole result (`changes.tree`): what may not land is refused by name, what the base's rules
ignore is left out, and nothing of `.sanduk` is in it. The last of a series is exactly the result
that was read from the files; what was not committed is a commit of its own.
"""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from changes import module_files
from changes.agents_commits import Commit, commits_of
from changes.clone_objects import ObjectLimits, Unreadable, taken
from changes.entries import Entry, listing
from changes.gathered import Gathered, above, is_below
from changes.git import GitError, line
from changes.ignore_rules import of_base
from changes.names import forbidden, is_module_file
from changes.own_paths import is_ours
from changes.store import Store, object_id
from changes.tree import Limits, Refused
from runs.visible import visible

_MB = 1 << 20
_LIMITS, _OBJECT_LIMITS = Limits(), ObjectLimits()
_TREE_MAX = 128 << 20  # bytes of all paths of one commit
_TREE_S = 60.0
_LIST_MAX = 64 << 20  # bytes of the paths that one commit changes
_CHANGES_MAX = 1_000_000  # paths that all commits change
_NAME_MAX = 255  # bytes of one name that a file system takes
_IGNORED = ""  # left out without a word, as the whole's list names it
_NOTHING = "000000"
_FILE, _PROGRAM, _LINK, _MODULE = "100644", "100755", "120000", "160000"
_REPOSITORY = {b"HEAD", b"objects", b"refs"}

Put = tuple[str, str]  # mode, object id


@dataclass(frozen=True, slots=True)
class Kept:
    """One commit that lands.

    Args:
        tree: in our store.
        message: the agent's words, cleaned; "" for what it had not committed.
    """

    tree: str
    message: str


@dataclass(frozen=True, slots=True)
class Series:
    """Attributes:
    commits: the oldest first; empty where the change lands as one commit.
    note: what a person should know of it, a sentence; "" for nothing.
    refused: paths that a commit lacks though the agent committed them, and why.
    """

    commits: tuple[Kept, ...]
    note: str = ""
    refused: tuple[Refused, ...] = ()

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Tree and message of each."""
        return [(each.tree, each.message) for each in self.commits]


def read(
    clone: Path,
    store: Store,
    base_commit: str,
    tree: str,
    *,
    limits: Limits = _LIMITS,
    objects: ObjectLimits = _OBJECT_LIMITS,
) -> Series:
    """The commits from the base to a result, as they can land.

    It never raises because of what the agent wrote: the change lands as one commit then, and the
    note says why.

    Args:
        tree: what `changes.tree.read` found in the clone's files.
    """
    try:
        with taken(clone, store, objects) as (scratch, tip):
            commits = commits_of(scratch, tip, base_commit)
            if not commits:
                return Series((), "the agent made no commit of its own: it lands as one commit")
            return _Building(store, scratch, base_commit, limits).series(commits, tree)
    except (Unreadable, GitError) as exc:
        why = str(exc)
    except OSError as exc:
        why = f"its git directory cannot be read: {exc.strerror or exc}"
    return Series((), f"it lands as one commit, because {visible(why, limit=500)}")


def protect(store: Store, name: str, commits: Sequence[Kept]) -> None:
    """Keep the trees of a series, under one name. Raises GitError."""
    listed = "".join(
        f"040000 tree {object_id(each.tree)}\t{number:04d}\n"
        for number, each in enumerate(commits, 1)
    )
    store.keep(name, line(store.git("mktree", stdin=listed.encode())))


class _Building:
    """The trees of a line of commits, one after the other."""

    def __init__(self, store: Store, scratch: Store, base_commit: str, limits: Limits) -> None:
        self._store, self._scratch, self._limits = store, scratch, limits
        self._base_tree = store.tree_of(base_commit)
        entries = listing(store.path, self._base_tree)
        self._base = {entry.path: entry for entry in entries}
        self._reasons: dict[tuple[bytes, Put], str] = {}
        self._wanted: list[str] = []

    def series(self, commits: Sequence[Commit], tree: str) -> Series:
        steps = self._steps(commits)
        self._judge({(path, put) for step in steps for path, put in step.items() if put})
        self._fetch()
        state = {path: (entry.mode, entry.id) for path, entry in self._base.items()}
        kept: list[Kept] = []
        refused: dict[tuple[bytes, str], Refused] = {}
        before = self._base_tree
        for commit, step in zip(commits, steps, strict=True):
            for path, put in step.items():
                state.pop(path, None)
                if put is not None:
                    state[path] = put
            gathered = self._gathered(state)
            made = gathered.tree(self._store, self._base_tree)
            for path, reason in gathered.refused.items():
                refused[path, reason] = Refused(path, f"{reason} (in the agent's commits)")
            if made != before:
                kept.append(Kept(made, commit.message))
                before = made
        empty = len(commits) - len(kept)
        if not kept:
            note = "no commit of the agent changes what can land: it lands as one commit"
            return Series((), note, tuple(refused.values()))
        if before != tree:
            kept.append(Kept(tree, ""))
        return Series(tuple(kept), _note(commits, empty), tuple(refused.values()))

    # -- what the commits change ------------------------------------------------------------------
    def _steps(self, commits: Sequence[Commit]) -> list[dict[bytes, Put | None]]:
        """What each commit puts where; None for what it takes away."""
        found, many, before = [], 0, self._base_tree
        for commit in commits:
            _require_small(self._scratch, commit.tree)
            step = dict(_differing(self._scratch, before, commit.tree))
            many += len(step)
            if many > _CHANGES_MAX:
                raise Unreadable(f"its commits change more than {_CHANGES_MAX:,} paths")
            found.append(step)
            before = commit.tree
        return found

    def _gathered(self, state: Mapping[bytes, Put]) -> Gathered:
        """What of a commit's tree is taken."""
        gathered = Gathered(self._base)
        for path, put in state.items():
            entry = self._base.get(path)
            if entry is not None and (entry.mode, entry.id) == put:
                gathered.found[path] = put
                continue
            reason = self._reasons.get((path, put))
            if reason is None:
                gathered.found[path] = (_usual(put[0]), put[1])
            elif reason:
                gathered.refuse(path, reason)
        if any(path not in self._base for path in gathered.found):
            gathered.refuse_twins()
        broken = module_files.broken(self._store, self._base, gathered.found)
        for path, reason in broken.items():
            gathered.refuse(path, reason)
        return gathered

    # -- what of it may land ----------------------------------------------------------------------
    def _judge(self, everything: Iterable[tuple[bytes, Put]]) -> None:
        """Find out why something is not taken, for whatever a commit puts anywhere."""
        possible = []
        for path, put in sorted(everything):
            if is_ours(path):
                self._reasons[path, put] = _IGNORED
            elif reason := self._why_not(path, put[0]):
                self._reasons[path, put] = reason
            elif put[0] != _MODULE:
                possible.append((path, put))
        paths = sorted({path for path, _ in possible if path not in self._base})
        others = _repositories(paths, self._base)
        ignored = self._ignored(paths)
        for path, put in possible:
            if is_below(path, others):
                self._reasons[path, put] = "lies in a repository of its own"
            elif path in ignored:
                self._reasons[path, put] = _IGNORED
        self._weigh([one for one in possible if one not in self._reasons])

    def _why_not(self, path: bytes, mode: str) -> str:
        if reason := forbidden(path):
            return reason
        if any(len(part) > _NAME_MAX for part in path.split(b"/")):
            return f"has a name of more than {_NAME_MAX} bytes"
        if path.count(b"/") >= self._limits.depth:
            return f"lies deeper than {self._limits.depth} directories"
        entry = self._base.get(path)
        if mode == _MODULE:
            is_old = entry is not None and entry.is_repository
            what = "is a submodule: what was written in it cannot land here"
            return what if is_old else "is a repository of its own"
        if entry is not None and entry.is_repository:
            return "is a submodule: what was written in it cannot land here"
        if any((up := self._base.get(each)) and up.is_repository for each in above(path)):
            return "lies in a submodule: what was written in it cannot land here"
        if mode == _LINK:
            return "is a link where git follows none" if is_module_file(path) else ""
        return "" if stat.S_ISREG(int(mode, 8)) else "is neither a file nor a link"

    def _ignored(self, paths: Sequence[bytes]) -> set[bytes]:
        """Those of some new paths that the base's rules leave out."""
        old = {directory for path in self._base for directory in above(path)}
        new = sorted({each for path in paths for each in above(path)} - old)
        with of_base(self._store, list(self._base.values())) as rules:
            named = rules.ignored(new, paths)
        return {path for path in paths if is_below(path, named)}

    def _weigh(self, wanted: Sequence[tuple[bytes, Put]]) -> None:
        """Refuse what is too large, and what is not there."""
        known = {entry.id for entry in self._base.values() if not entry.is_repository}
        asked = {put[1] for _, put in wanted} - known
        sizes = _blob_sizes(self._scratch, asked)
        room, counted = self._limits.new_bytes, set[str]()
        for path, put in wanted:
            name = put[1]
            if name in known or name in counted:
                continue
            size = sizes.get(name)
            if size is None:
                self._reasons[path, put] = "has a content that is not in the agent's clone"
            elif size > self._limits.file_bytes:
                limit = self._limits.file_bytes // _MB
                self._reasons[path, put] = f"holds {size} bytes, more than {limit} MB"
            elif size > room:
                limit = self._limits.new_bytes // _MB
                self._reasons[path, put] = f"is more than {limit} MB of new content"
            else:
                room -= size
                counted.add(name)
        self._wanted = sorted(counted)

    def _fetch(self) -> None:
        """Copy the contents that are taken, and nothing else, into our store."""
        lacking = set(self._wanted) - set(self._store.sizes(self._wanted))
        if not lacking:
            return
        listed = "".join(f"{name}\n" for name in sorted(lacking)).encode()
        with tempfile.TemporaryFile(dir=self._store.path) as pack:
            self._scratch.git("pack-objects", "--stdout", "--quiet", stdin=listed, stdout=pack)
            pack.seek(0)
            self._store.git("index-pack", "--stdin", stdin=pack)


def _require_small(scratch: Store, tree: str) -> None:
    """A small tree may name itself over and over: a comparison would collect all of it first."""
    words = ("ls-tree", "-r", "-t", "-z", "--name-only", "--full-tree", object_id(tree))
    scratch.git(*words, limit_bytes=_TREE_MAX, timeout_s=_TREE_S)


def _differing(scratch: Store, before: str, tree: str) -> Iterable[tuple[bytes, Put | None]]:
    said = scratch.git(
        "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", "--no-abbrev",
        "--ignore-submodules=none", object_id(before), object_id(tree),
        limit_bytes=_LIST_MAX,
    )  # fmt: skip
    words = iter(said.split(b"\0")[:-1])
    for head, path in zip(words, words, strict=True):
        _, mode, _, name, _ = head.removeprefix(b":").decode("ascii").split(" ")
        yield path, (None if mode == _NOTHING else (mode, name))


def _blob_sizes(scratch: Store, things: Iterable[str]) -> dict[str, int]:
    asked = "".join(f"{object_id(thing)}\n" for thing in sorted(things)).encode()
    words = "--batch-check=%(objectname) %(objecttype) %(objectsize)"
    lines = [
        one.split() for one in scratch.git("cat-file", words, stdin=asked).decode().split("\n")
    ]
    return {one[0]: int(one[2]) for one in lines if len(one) == 3 and one[1] == "blob"}


def _repositories(paths: Iterable[bytes], base: Mapping[bytes, Entry]) -> set[bytes]:
    """New directories that git would take for repositories."""
    old = {directory for path in base for directory in above(path)}
    children: dict[bytes, set[bytes]] = {}
    for path in paths:
        for part in (path, *above(path)):
            directory, _, name = part.rpartition(b"/")
            if name in _REPOSITORY and directory and directory not in old:
                children.setdefault(directory, set()).add(name)
    return {directory for directory, names in children.items() if names == _REPOSITORY}


def _usual(mode: str) -> str:
    if mode in (_LINK, _MODULE):
        return mode
    return _PROGRAM if int(mode, 8) & stat.S_IXUSR else _FILE


def _note(commits: Sequence[Commit], empty: int) -> str:
    merges = sum(each.is_merge for each in commits)
    told = []
    if merges:
        what = "1 merge lands" if merges == 1 else f"{merges} merges land"
        told.append(f"{what} as one commit each, without the commits that were merged")
    if empty:
        what = "1 commit that changes" if empty == 1 else f"{empty} commits that change"
        told.append(f"{what} nothing here left out")
    return "; ".join(told)
