"""What a hostile box left, read and landed as every change's result is: did a trap spring?"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from changes import artifacts, landing, patches, tree
from changes.entries import listing
from changes.git import GitError, git, line
from runs.refusal import Refusal
from sanduk_site.boundary.ground import Ground

READ_S = 60.0
BRANCH = "sanduk-boundary-landed"
# what git itself would take for a directory of its own somewhere, and what is no file at all
REFUSED = (b".GIT", b"sub", b"pipe")
ALLOWED_ARTIFACTS = {"good.txt", "page.html"}


def patch(ground: Ground) -> list[str]:
    """Read the tree, make its patch, land it: what went wrong, in words."""
    provided = ground.provided
    assert provided is not None  # noqa: S101 - the ground is laid
    before = _checkout_of(ground.repository)
    try:
        found = tree.read(ground.work, ground.store, provided.base_commit)
        changed = patches.changed_paths(ground.store, provided.base_tree, found.tree)
        text = patches.patch(ground.store, provided.base_tree, found.tree)
        who = landing.Person("boundary", "boundary@sanduk.invalid", int(time.time()))
        commit = landing.land(
            ground.repository, provided.base_commit, found.tree, ground.store,
            message="boundary\n", author=who, committer=who, branch=BRANCH,
        )  # fmt: skip
    except (Refusal, GitError, OSError) as exc:
        return [f"the result could not be read and landed: {exc}"]
    troubles = list(_of_the_tree(ground, found, {each.path for each in changed}))
    if _word(ground) in text:
        troubles.append("a file of the host's stands in the patch")
    troubles += _of_the_repository(ground, commit, found.tree, before)
    return [*troubles, *sprung(ground)]


def sprung(ground: Ground) -> list[str]:
    return ["a program of the box's ran on this host"] if ground.sprung.exists() else []


def _of_the_tree(ground: Ground, found: tree.Result, changed: set[bytes]) -> Iterator[str]:
    refused = {each.path for each in found.refused}
    for path in REFUSED:
        if not os.path.lexists(os.fsencode(ground.work) + b"/" + path):
            continue  # a runtime may keep a pipe to itself: then none came back
        if not any(each == path or each.startswith(path + b"/") for each in refused):
            yield f"{path.decode()} is not refused by name"
    entries = {entry.path: entry for entry in listing(ground.store.path, found.tree)}
    link = entries.get(b"link-out")
    if link is None or link.mode != "120000":
        yield "a link that leads out is not kept as a link"
    elif ground.store.blob(link.id, limit=4096).data != os.fsencode(ground.secret):
        yield "a link that leads out was followed"
    if any(b"/.git/" in b"/" + path.lower() + b"/" for path in entries):
        yield "a git directory is in the result"
    if any(path.split(b"/")[0] in (b".sanduk", b".sandkeep") for path in entries):
        yield "what belongs to sanduk is in the result"
    for path in (b"tracked.txt", b"with\nline feed", b"set-uid"):
        if path not in changed:
            yield f"{os.fsdecode(path)!r} is missing from the list of what changed"


def _of_the_repository(
    ground: Ground, commit: str, landed: str, before: tuple[str, str]
) -> Iterator[str]:
    git_dir = ground.repository / ".git"
    said = line(git("rev-parse", f"refs/heads/{BRANCH}^{{tree}}", git_dir=git_dir))
    if said != landed or line(git("rev-parse", BRANCH, git_dir=git_dir)) != commit:
        yield "what was landed is not what was read"
    if _checkout_of(ground.repository) != before:
        yield "landing changed the checkout, the index or HEAD"
    try:
        git("fsck", "--strict", "--no-progress", git_dir=git_dir)
    except GitError as exc:
        yield f"git fsck complains afterwards: {exc}"


def _checkout_of(repository: Path) -> tuple[str, str]:
    """HEAD and index, and every file of the checkout."""
    index = repository / ".git" / "index"
    files = [path for path in sorted(repository.iterdir()) if path.name != ".git"]
    told = [f"{path.name} {path.lstat().st_mtime_ns} {path.lstat().st_size}" for path in files]
    head = (repository / ".git" / "HEAD").read_text()
    return head + str(index.read_bytes() if index.exists() else b""), "\n".join(told)


def artifact(ground: Ground) -> list[str]:
    """Take the artifacts: what went wrong, in words."""
    begun = time.monotonic()
    taken = artifacts.take(ground.work)
    troubles = []
    if time.monotonic() - begun > READ_S:
        troubles.append("taking them does not end")
    kept = {each.name for each in taken if not each.refused}
    if any(_word(ground) in each.data for each in taken):
        troubles.append("a file of the host's is among them")
    for name in sorted(kept - ALLOWED_ARTIFACTS):
        troubles.append(f"{name!r} is kept")
    for name in sorted(ALLOWED_ARTIFACTS - kept):
        troubles.append(f"{name!r}, which is allowed, is not kept")
    if any(artifacts.TYPES.get(each) == "text/html" for each in ("html", "svg")):
        troubles.append("a page is served as one")
    return [*troubles, *sprung(ground)]


def _word(ground: Ground) -> bytes:
    """What the host's secret file says."""
    return f"secret {ground.nonce}".encode()
