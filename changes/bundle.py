"""What of a repository goes to an agent: one bundle of the base commit, and nothing else.

Never the checkout, its configuration, its remotes, its untracked files or its other branches.
The parents of the base commit are left out unless history is asked for.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from changes import left_behind
from changes.entries import Entry, listing
from changes.git import GitError, git, line
from changes.names import forbidden
from changes.repository import Repository, find
from changes.store import Store, object_id
from runs.refusal import Refusal
from runs.visible import visible, visible_name


@dataclass(frozen=True, slots=True)
class Provided:
    """What an agent's clone is made of.

    Attributes:
        repository: the top of the work tree, or the bare repository.
        git_dir: where `HEAD` of this work tree is read; where its refs are is git's affair.
        base_commit, base_tree: full object ids.
        branch: the short name of the branch the base was named by; "" for any other commit.
        object_format: `sha1` or `sha256`.
        shallow: commits in the bundle whose parents are not.
        bundle: the file.
        left_out: what a person might expect in it and will not find, one sentence each.
    """

    repository: Path
    git_dir: Path
    base_commit: str
    base_tree: str
    branch: str
    object_format: str
    shallow: tuple[str, ...]
    bundle: Path
    left_out: tuple[str, ...]


def provide(
    repository: Path, ref: str | None = None, history: int | None = None, *, directory: Path
) -> Provided:
    """Write the bundle of a base commit.

    Args:
        repository: a work tree, a directory in one, a linked work tree or a bare repository.
        ref: a branch, a tag or any commit; without it what is checked out.
        history: how many commits deep, along every parent; 1 is the base commit alone.
        directory: where the bundle's file is made.
    Raises:
        Refusal: what is there cannot be handed over; the text says what to do.
    """
    found = find(repository)
    top = found.top()
    if history is not None and history < 1:
        raise Refusal(f"--history {history}: ask for 1 commit or more")
    commit = _commit(found, ref)
    try:
        tree = line(git("rev-parse", "--verify", f"{commit}^{{tree}}", git_dir=found.git_dir))
        entries = listing(found.git_dir, tree)
        _require_plain(found, entries)
        shallow = _shallow(found, commit, history or 1)
        left_out = tuple(left_behind.sentences(found, top, entries, tree))
        branch = _branch(found, ref)
        bundle = write(found.git_dir, commit, shallow, found.object_format, directory)
    except GitError as exc:
        raise _incomplete(found, exc) from None
    return Provided(
        top, found.git_dir, commit, tree, branch, found.object_format, shallow, bundle,
        left_out,
    )  # fmt: skip


def bring(repository: Path, ref: str | None, store: Store) -> str:
    """Take a commit as it is in a repository now, without its history; its id.

    For asking what a result conflicts with. Raises Refusal, as `provide` does.
    """
    found = find(repository)
    commit = _commit(found, ref)
    if store.holds(commit):
        return commit
    try:
        shallow = _shallow(found, commit, 1)
        with tempfile.TemporaryDirectory(dir=store.path) as scratch:
            bundle = write(found.git_dir, commit, shallow, found.object_format, Path(scratch))
            store.take(bundle, commit, shallow)
    except GitError as exc:
        raise _incomplete(found, exc) from None
    return commit


def write(
    git_dir: Path, commit: str, shallow: Sequence[str], object_format: str, directory: Path
) -> Path:
    """A bundle of `commit` down to the commits in `shallow`. Raises GitError.

    git's own `bundle create` would name the missing parents as prerequisites, and nobody could
    read it without them; its format is documented in gitformat-bundle(5).
    """
    asked = "".join(f"--shallow {object_id(one)}\n" for one in shallow) + f"{object_id(commit)}\n"
    descriptor, name = tempfile.mkstemp(suffix=".bundle", dir=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            version_3 = f"# v3 git bundle\n@object-format={object_format}\n"
            head = "# v2 git bundle\n" if object_format == "sha1" else version_3
            file.write(f"{head}{commit} refs/heads/base\n\n".encode())
            file.flush()
            git(
                # what the repository itself was cut at is in `shallow` as well
                "--shallow-file", "", "pack-objects", "--revs", "--stdout", "--quiet",
                "--delta-base-offset", "--no-use-bitmap-index",
                git_dir=git_dir, stdin=asked.encode(), stdout=file,
            )  # fmt: skip
    except BaseException:
        Path(name).unlink()
        raise
    return Path(name)


def _commit(found: Repository, ref: str | None) -> str:
    wanted = "HEAD" if ref is None else ref
    shown = visible_name(str(found.asked))
    try:
        commit = _resolved(found, f"{wanted}^{{commit}}")
        named = "" if commit else _resolved(found, wanted)
        # a branch that leads to an object which is not there; an id may name just that
        is_lost = named not in ("", wanted.lower()) and not _is_there(found, named)
    except GitError as exc:
        raise _incomplete(found, exc) from None
    if commit:
        return commit
    if is_lost:
        raise Refusal(_not_whole(shown))
    if ref is None:
        raise Refusal(f"{shown} has no commit yet: commit what the agent may see, then try again")
    raise Refusal(
        f"--base {visible(ref)}: {shown} has no such commit; `git log` shows what is there"
    )


def _resolved(found: Repository, name: str) -> str:
    """The one object that a revision names; "" where git knows none. Raises GitError."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", name)
    try:
        return object_id(line(git(*words, git_dir=found.git_dir)).splitlines()[-1])
    except GitError as exc:
        if not _is_not_found(exc):
            raise
    except (IndexError, ValueError):
        pass  # `^HEAD`, or a zero byte: no name of one object
    return ""


def _is_there(found: Repository, name: str) -> bool:
    try:
        git("cat-file", "-e", name, git_dir=found.git_dir)
    except GitError as exc:
        if not _is_not_found(exc):
            raise
        return False
    return True


def _is_not_found(error: GitError) -> bool:
    """Whether git found nothing, rather than failed: then it says nothing.

    So git-rev-parse(1) with `--quiet`, and git-cat-file(1) with `-e`; status 128 is a reflog
    that is shorter than what was asked for.
    """
    return error.code in (1, 128) and not error.errors.strip()


def _branch(found: Repository, ref: str | None) -> str:
    words = ("rev-parse", "--quiet", "--symbolic-full-name", "--end-of-options", ref or "HEAD")
    said = line(git(*words, git_dir=found.git_dir)).splitlines()
    name = said[-1] if said else ""
    return name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else ""


def _shallow(found: Repository, commit: str, history: int) -> tuple[str, ...]:
    """The commits at which the history is cut, as deep as asked for along every parent."""
    words = ["rev-list", "--parents", *(["--max-count=1"] if history == 1 else []), commit]
    lines = git(*words, git_dir=found.git_dir).decode().splitlines()
    parents = {name: above for name, *above in (one.split() for one in lines)}
    here, level = {commit}, [commit]
    for _ in range(history - 1):
        level = sorted({up for one in level for up in parents.get(one, ())} - here)
        if not level:
            break
        here.update(level)
    cut = {one for one in here if not here.issuperset(parents.get(one, ()))}
    # a commit at which the repository itself is cut shows no parents, and has some
    file = found.common_dir / "shallow"
    own = re.findall("[0-9a-f]+", file.read_text()) if file.is_file() else []
    return tuple(sorted(cut | here.intersection(own)))


def _require_plain(found: Repository, entries: Sequence[Entry]) -> None:
    for entry in entries:
        reason = forbidden(entry.path)
        if reason:
            raise Refusal(
                f"{visible_name(str(found.asked))} holds {visible_name(os.fsdecode(entry.path))}, "
                f"which {reason}: rename it in a commit, or take a base without it (--base)"
            )


def _incomplete(found: Repository, error: GitError) -> Refusal:
    where = visible_name(str(found.asked))
    partial = b"promisor" in error.errors or b"missing" in error.errors
    if partial or b"unable to read" in error.errors or b"bad object" in error.errors:
        return Refusal(_not_whole(where))
    return Refusal(f"the base commit of {where} cannot be packed: {error}")


def _not_whole(where: str) -> str:
    return (
        f"objects of the base commit are not in {where} (a partial clone, or a broken one): "
        "fetch them with `git fetch --refetch --no-filter`, or clone it whole"
    )
