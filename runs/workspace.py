"""The directory an agent works in: who owns it decides who the agent is.

A container's root could leave a set-uid root file in a bind mount even without a capability, so
no agent ever runs as uid 0. Nothing is chowned silently.
"""

from __future__ import annotations

import os
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path

from runs import trusted
from runs.mounts import check_outside_state, holds_engine_socket
from runs.paths import expanded
from runs.refusal import Refusal

UNPRIVILEGED = 1000  # who owns what root has us make


class WrongOwner(Refusal):
    """Whose a directory is, or what its owner may do there, keeps an agent out.

    Args:
        path: the directory.
        why: what is wrong with it, as words behind its name.
        command: what would change that, for who has a shell on this host.
    """

    def __init__(self, path: Path, why: str, command: str) -> None:
        super().__init__(f"{path} {why}; {command}")
        self.path, self.why = path, why


@dataclass(frozen=True, slots=True)
class Workspace:
    """Args:
    path: resolved, without a link in it.
    uid, gid: who the agent runs as.
    created: it was made for this run.
    note: what a person should know about it, or "".
    """

    path: Path
    uid: int
    gid: int
    created: bool = False
    note: str = ""


def resolve(text: str) -> Path:
    """The real path of a workspace that may not exist yet. Raises Refusal for a loop of links."""
    try:
        return expanded(text, what="--workdir").resolve()
    except (OSError, RuntimeError) as exc:
        raise Refusal(f"--workdir {text} cannot be resolved: {exc}") from None


def check(text: str, *, state: Path) -> Workspace:
    """What the workspace is or would be, without touching anything. Raises Refusal."""
    if not text:  # it would be wherever this process happens to be
        raise Refusal("--workdir names no directory")
    path = resolve(text)
    if path == Path("/"):
        raise Refusal("--workdir / would give the whole host to an agent")
    check_outside_state(f"--workdir {text}", path, state)
    if trusted.is_of_the_system(path):
        raise Refusal(
            f"{path} is no place for an agent to work in; give it a directory of its own, "
            "such as --workdir ./work"
        )
    trusted.check(f"--workdir {text}", path)
    try:
        facts = path.stat()
    except FileNotFoundError:
        _refuse_dangling(text)
        uid, gid = agents_account()
        return Workspace(path, uid, gid, created=True, note=f"created {path}")
    except OSError as exc:
        raise Refusal(f"--workdir {text} cannot be used: {exc.strerror}") from None
    if not stat.S_ISDIR(facts.st_mode):
        raise Refusal(f"--workdir {text} is no directory")
    if holds_engine_socket(path):
        raise Refusal(f"--workdir {text} holds an engine's socket, which is root on this host")
    check_owner(path, facts)
    linked = expanded(text, what="--workdir").is_symlink()
    return Workspace(
        path,
        facts.st_uid,
        facts.st_gid or facts.st_uid,
        note=f"{text} is a link to {path}" if linked else "",
    )


def of_ours(path: Path) -> Workspace:
    """A directory that our own code made for one run; its owner is who the agent runs as."""
    facts = path.stat()
    return Workspace(path, facts.st_uid, facts.st_gid)


def agents_account() -> tuple[int, int]:
    """User and group to give such a directory to: no agent runs as root."""
    if os.geteuid() == 0:
        return UNPRIVILEGED, UNPRIVILEGED
    return os.geteuid(), os.getegid()


def _refuse_dangling(text: str) -> None:
    """A link to nothing, anywhere in the path, would have its target made on the host."""
    typed = expanded(text, what="--workdir").absolute()
    for place in (typed, *typed.parents):
        if place.is_symlink() and not place.exists():
            raise Refusal(
                f"--workdir {text}: {place} is a link to {place.readlink()}, which is not there; "
                "make that directory, or give another"
            )


def check_owner(path: Path, facts: os.stat_result) -> None:
    """Raises WrongOwner where whose a directory is keeps agents out."""
    quoted = shlex.quote(str(path))
    caller = os.geteuid()
    if facts.st_uid == 0:
        owner = f"{caller}:{os.getegid()}" if caller else f"{UNPRIVILEGED}:{UNPRIVILEGED}"
        sudo = "sudo " if caller else ""
        raise WrongOwner(
            path,
            "belongs to root, and no agent runs as root",
            f"give it away with: {sudo}chown -R {owner} {quoted}",
        )
    if facts.st_mode & 0o300 != 0o300:
        raise WrongOwner(
            path, "could not be written in by the agent", f"allow it with: chmod u+wx {quoted}"
        )
    if caller != 0 and not os.access(path, os.W_OK | os.X_OK):
        raise WrongOwner(
            path,
            "may not be written in by you",
            f"take it over with: sudo chown {caller} {quoted}",
        )


def prepare(workspace: Workspace) -> None:
    """Make a workspace that `check` found missing, with the parents it lacks.

    Raises Refusal when that is not possible.
    """
    if not workspace.created:
        return
    missing = [workspace.path]
    while not (parent := missing[-1].parent).exists():
        missing.append(parent)
    try:
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            if os.geteuid() == 0:
                # not through a link that somebody put there meanwhile
                os.chown(path, workspace.uid, workspace.gid, follow_symlinks=False)
    except OSError as exc:
        raise Refusal(f"{workspace.path} cannot be created: {exc.strerror}") from None
