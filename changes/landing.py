"""Landing an accepted tree on a fresh branch, as one commit or a series; nothing else is touched.

No checkout, no index, no hook, no filter: objects go from our store into the repository as a
pack that git checks, and a reference is made that must not have been there. Done again after a
crash it finds what it made and says so.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from changes.git import GitError, git, line
from changes.repository import Repository, find
from changes.store import Store, object_id
from runs.refusal import Refusal
from runs.visible import visible, visible_name

# a name that needs no question: the ones we make ourselves
_ORDINARY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(?:/[A-Za-z0-9][A-Za-z0-9_-]*)*")
_SUBJECT = 72  # characters
_SIGNING_S = 120.0  # somebody may have to type a passphrase
# what git runs to sign, and what it takes where nothing is named
_SIGNERS = {
    "gpg.program": "gpg",
    "gpg.openpgp.program": "",
    "gpg.x509.program": "gpgsm",
    "gpg.ssh.program": "ssh-keygen",
    "gpg.ssh.defaultKeyCommand": "",
    "core.askPass": "",
}
# what was written survives a power cut before anybody is told that it was accepted
_DURABLE = {"core.fsync": "committed", "i18n.commitEncoding": "UTF-8"}


@dataclass(frozen=True, slots=True)
class Person:
    """Who wrote or committed something, and when.

    Attributes:
        at: seconds since the epoch.
        zone: offset from UTC, "+0200".
    """

    name: str
    email: str
    at: int
    zone: str = "+0000"

    def variables(self, role: str) -> dict[str, str]:
        """As git takes them; a name cannot end the header it stands in."""
        return {
            f"GIT_{role}_NAME": _word(self.name) or "unknown",
            f"GIT_{role}_EMAIL": _word(self.email),
            f"GIT_{role}_DATE": f"@{self.at:d} {self.zone}",
        }


class BranchTaken(Refusal):
    """The branch is there already, and is something else."""


def message_of(subject: str, body: str, trailers: Sequence[tuple[str, str]]) -> str:
    """A commit message: one subject line, a text, and trailers nobody can add to.

    Trailers are the last paragraph only, so what the text says cannot pass for one.
    """
    first = visible(" ".join(subject.split()), limit=_SUBJECT) or "(no subject)"
    paragraphs = [first, visible(body, lines=True).strip()]
    block = "\n".join(f"{key}: {visible(' '.join(value.split()))}" for key, value in trailers)
    return "\n\n".join(part for part in (*paragraphs, block) if part) + "\n"


def land(
    repository: Path,
    base_commit: str,
    tree: str,
    store: Store,
    *,
    message: str,
    author: Person,
    committer: Person,
    branch: str,
    sign: bool = False,
    before: Sequence[tuple[str, str]] = (),
) -> str:
    """Make `branch` in the repository: the base, and a commit that holds exactly `tree`.

    Args:
        before: tree and message of the commits between the base and that one, the oldest first.
        branch: the short name of a branch that is not there yet.
        sign: sign it as the account's own git would.
    Returns:
        the id of the commit the branch was read back to be.
    Raises:
        BranchTaken: the branch is there with something else on it.
        Refusal: the base is gone, the branch cannot be named so, or it cannot be signed.
        GitError: anything else git could not do.
    """
    found = find(repository)
    ref = _ref(found, branch)
    who = {**author.variables("AUTHOR"), **committer.variables("COMMITTER")}
    series = [*before, (tree, message)]
    unsigned = commit = _chain(
        series,
        base_commit,
        lambda *words, stdin: store.git(*words, env=who, stdin=stdin, settings=_DURABLE),
    )
    _bring(store, found, [unsigned] if not sign else [each for each, _ in series], base_commit)
    if sign:
        commit = _chain(
            series, base_commit, lambda *words, stdin: _signed(found, words, who, stdin)
        )
    nothing = "0" * len(commit)
    try:
        git(
            "update-ref", "-m", "sanduk: accepted", ref, commit, nothing,
            git_dir=found.git_dir, env=who, settings=_DURABLE,
        )  # fmt: skip
    except GitError:
        there = _at(found, ref)
        if not there:
            raise
        if not _is_same(found.git_dir, there, store.path, unsigned, len(series)):
            raise BranchTaken(f"the branch {visible(branch)} is there already") from None
        commit = there
    _read_back(found, ref, commit, [each for each, _ in series], base_commit)
    return commit


def signs(repository: Path) -> bool:
    """Whether the account's git signs the commits it makes here."""
    words = ("config", "--type=bool", "commit.gpgSign")
    said = git(*words, git_dir=find(repository).git_dir, owner=True, codes=(0, 1))
    return line(said) == "true"


def identity(repository: Path) -> tuple[str, str] | None:
    """Name and mail address the account's git commits with here; None when it has none."""
    git_dir = find(repository).git_dir
    asked = (("config", "user.name"), ("config", "user.email"))
    name, email = (line(git(*words, git_dir=git_dir, owner=True, codes=(0, 1))) for words in asked)
    return (name, email) if name and email else None


def _ref(found: Repository, branch: str) -> str:
    """The full name, when a branch may be called so and nothing stands on it unborn."""
    ref = f"refs/heads/{branch}"
    allowed = _ORDINARY.fullmatch(branch) is not None or _is_allowed(ref)
    if branch.startswith(("-", "refs/")) or branch == "HEAD":
        allowed = False
    if not allowed:
        raise Refusal(f"no branch can be called {visible(branch)!r}")
    heads = [found.git_dir / "HEAD", found.common_dir / "HEAD"]
    for head in {*heads, *found.common_dir.glob("worktrees/*/HEAD")}:
        named = head.read_bytes().strip() == b"ref: " + os.fsencode(ref)
        if named and not _at(found, ref):
            raise BranchTaken(f"the branch {visible(branch)} is checked out, without a commit yet")
    return ref


def _is_allowed(ref: str) -> bool:
    try:
        git("check-ref-format", ref)
    except (GitError, ValueError):  # a zero byte is no word of a command
        return False
    return True


def _chain(series: Sequence[tuple[str, str]], base_commit: str, make: Callable[..., bytes]) -> str:
    """The last of a line of commits on the base, each made with `make`."""
    at = object_id(base_commit)
    for tree, message in series:
        words = ("commit-tree", object_id(tree), "-p", object_id(at))
        at = line(make(*words, stdin=message.encode(errors="replace")))
    return at


def _bring(store: Store, found: Repository, wanted: Sequence[str], base_commit: str) -> None:
    """Copy what the repository lacks of some objects; git checks every object of the pack."""
    asked = "".join(f"{each}\n" for each in (*wanted, f"^{base_commit}")).encode()
    with tempfile.TemporaryFile(dir=store.path) as pack:
        store.git("pack-objects", "--revs", "--stdout", "--quiet", stdin=asked, stdout=pack)
        pack.seek(0)
        try:
            words = ("index-pack", "--stdin", "--strict")
            git(*words, git_dir=found.git_dir, stdin=pack, settings=_DURABLE)
        except GitError as exc:
            if _at(found, f"{base_commit}^{{commit}}"):
                raise
            raise Refusal(
                f"the base commit {base_commit} is no longer in {visible_name(str(found.asked))}: "
                "fetch it again, or start a new change from what is there"
            ) from exc


def _signed(found: Repository, words: Sequence[str], who: Mapping[str, str], told: bytes) -> bytes:
    try:
        return git(
            *words, "-S",
            git_dir=found.git_dir, env=who, stdin=told, settings={**_DURABLE, **_signers()},
            owner=True, timeout_s=_SIGNING_S,
        )  # fmt: skip
    except GitError as exc:
        raise Refusal(
            f"git could not sign the commit ({exc}): unlock the key, or accept unsigned"
        ) from None


def _signers() -> dict[str, str]:
    """The programs that sign, of the account's own configuration: a repository names none."""
    found = {}
    for name, usual in _SIGNERS.items():
        said = ""
        for scope in ("--system", "--global"):
            words = ("config", scope, "--includes", "--get", name)
            said = line(git(*words, owner=True, codes=(0, 1, 128))) or said
        found[name] = said or usual
    found["gpg.openpgp.program"] = found["gpg.openpgp.program"] or found["gpg.program"]
    return found


def _at(found: Repository, name: str) -> str:
    """The object a name stands for; "" when for none."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", name)
    said = git(*words, git_dir=found.git_dir, codes=(0, 1, 128))
    return line(said).splitlines()[-1] if said else ""


def _is_same(git_dir: Path, there: str, ours: Path, commit: str, length: int) -> bool:
    """Whether two lines of so many commits are the same but for their signatures."""
    for _ in range(length):
        (one, up), (two, down) = _plain(git_dir, there), _plain(ours, commit)
        if one != two or len(up) != 1:
            return False
        there, commit = up[0], down[0]
    return there == commit


def _plain(git_dir: Path, commit: str) -> tuple[bytes, list[str]]:
    """A commit as it is stored, without signature and parents; and these."""
    head, _, text = git("cat-file", "commit", commit, git_dir=git_dir).partition(b"\n\n")
    kept: list[bytes] = []
    parents: list[str] = []
    signature = False
    for one in head.split(b"\n"):
        signature = one.startswith(b"gpgsig") or (signature and one.startswith(b" "))
        if one.startswith(b"parent "):
            parents.append(one[7:].decode())
        elif not signature:
            kept.append(one)
    return b"\n".join(kept) + b"\n\n" + text, parents


def _read_back(
    found: Repository, ref: str, commit: str, trees: Sequence[str], base_commit: str
) -> None:
    up = [f"{ref}~{number}^{{tree}}" for number in range(len(trees))]
    said = git("rev-parse", ref, *up, f"{ref}~{len(trees)}", git_dir=found.git_dir)
    if said.decode().split() != [commit, *trees[::-1], base_commit]:
        raise GitError(f"{ref} is not what was put there: {said.decode(errors='replace')}")


def _word(text: str) -> str:
    return " ".join(visible(text).replace("<", " ").replace(">", " ").split())
