"""Putting a snapshot in the place of a workspace: built beside it, then swapped by name.

At whatever point a process is killed, the workspace is the old one or the new one, whole. Where
the file system cannot swap two names at once, there is a moment without a workspace; `mend`, which
everything here begins with, ends that with the old one.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from assistants.memory.manifest import Entry, Manifest
from assistants.memory.store import PIECE, Store, sync_directory, sync_file_system
from runs import tree
from runs.refusal import Refusal
from runs.workspace import UNPRIVILEGED

_log = logging.getLogger(__name__)
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.EXDEV, errno.EOPNOTSUPP}


def replace(workspace: Path, manifest: Manifest, store: Store, *, keep_old: bool) -> Path | None:
    """Make `workspace` hold what `manifest` lists, belonging to whom it belongs now.

    Args:
        workspace: a real path; nothing may write in it meanwhile.
        keep_old: the old one holds what no snapshot does, so it stays beside the new one, instead
            of the one that stayed before.

    Returns:
        Where the old one stayed, if it did.

    Raises:
        Refusal: this account cannot give files to the workspace's owner.
        Damaged: a content is lost; the workspace is as it was.
        OSError: no room, or the workspace is a mount point.
    """
    mend(workspace)
    mode, uid, gid = _standing(workspace)
    new = workspace.with_name(f".{workspace.name}.restoring-{secrets.token_hex(6)}")
    new.mkdir(mode=0o700)
    try:
        with tree.opened(str(new)) as root:
            _Building(store, uid, gid).build(root, manifest)
            _give(root, uid, gid)
            os.fchmod(root, mode)
        sync_file_system(new)
    except BaseException:
        _remove(new)
        raise
    if not workspace.exists():
        new.rename(workspace)
        sync_directory(workspace.parent)
        return None
    aside = workspace.with_name(f"{workspace.name}.replaced-{secrets.token_hex(6)}")
    if keep_old:
        # under its last name before the swap, so that no later mending takes it for a leftover
        for earlier in _siblings(workspace, f"{workspace.name}.replaced-"):
            _remove_ours(earlier)
        new = new.rename(aside)
    _swap(new, workspace)
    sync_directory(workspace.parent)
    if keep_old:
        return aside
    _remove_ours(new)
    return None


def mend(workspace: Path) -> None:
    """End what a killed process left: a workspace without its name, or half of a new one."""
    for old in _siblings(workspace, f".{workspace.name}.old-"):
        if not os.path.lexists(workspace):
            old.rename(workspace)
        else:
            _remove_ours(old)
    for left in _siblings(workspace, f".{workspace.name}.restoring-"):
        _remove_ours(left)


def _siblings(workspace: Path, prefix: str) -> list[Path]:
    try:
        names = os.listdir(workspace.parent)  # noqa: PTH208 - names are all that is looked at
    except FileNotFoundError:
        return []
    return [workspace.with_name(name) for name in sorted(names) if name.startswith(prefix)]


def _standing(workspace: Path) -> tuple[int, int, int]:
    """The mode and owner of the workspace, or what a new one gets. Raises Refusal."""
    caller = os.geteuid()
    try:
        facts = workspace.stat()
    except FileNotFoundError:
        owner = (caller, os.getegid()) if caller else (UNPRIVILEGED, UNPRIVILEGED)
        return 0o755, *owner
    if caller not in (0, facts.st_uid):
        raise Refusal(
            f"{workspace} belongs to uid {facts.st_uid}; only that account and root can restore it"
        )
    return stat.S_IMODE(facts.st_mode), facts.st_uid, facts.st_gid


class _Building:
    """Writes entries below one open directory, each step one name below an open directory."""

    def __init__(self, store: Store, uid: int, gid: int) -> None:
        self._store, self._uid, self._gid = store, uid, gid

    def build(self, root: int, manifest: Manifest) -> None:
        inside: list[tuple[bytes, int, int]] = []  # name with its parents, descriptor, mode
        try:
            for entry in manifest.entries:
                parent, _, name = entry.path.rpartition(b"/")
                while inside and inside[-1][0] != parent:
                    self._close(*inside.pop()[1:])
                directory = inside[-1][1] if inside else root
                if entry.kind == "directory":
                    os.mkdir(name, 0o700, dir_fd=directory)
                    below = tree.below(directory, os.fsdecode(name))
                    inside.append((entry.path, below, entry.mode))
                elif entry.kind == "link":
                    os.symlink(entry.target, name, dir_fd=directory)
                    if self._is_other:
                        os.chown(
                            name, self._uid, self._gid, dir_fd=directory, follow_symlinks=False
                        )
                else:
                    self._file(directory, name, entry)
            while inside:
                self._close(*inside.pop()[1:])
        finally:
            for _, descriptor, _ in inside:
                os.close(descriptor)

    @property
    def _is_other(self) -> bool:
        return (self._uid, self._gid) != (os.geteuid(), os.getegid())

    def _close(self, descriptor: int, mode: int) -> None:
        """A directory gets its mode when all is in it: it may allow no writing."""
        try:
            _give(descriptor, self._uid, self._gid)
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)

    def _file(self, directory: int, name: bytes, entry: Entry) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=directory)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            for piece in self._store.content(entry.sha256):
                if len(piece) == PIECE and not any(piece):
                    file.seek(PIECE, os.SEEK_CUR)  # a hole stays a hole
                else:
                    _write(file.fileno(), piece)
            file.truncate(entry.size)
            _give(file.fileno(), self._uid, self._gid)
            os.fchmod(file.fileno(), entry.mode)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _give(descriptor: int, uid: int, gid: int) -> None:
    if (uid, gid) != (os.geteuid(), os.getegid()):
        os.fchown(descriptor, uid, gid)


def _swap(one: Path, other: Path) -> None:
    """Give each the other's name, in one step where the file system can."""
    library = ctypes.CDLL(None, use_errno=True)
    if hasattr(library, "renameat2"):
        here = -100  # AT_FDCWD; the paths are absolute
        if library.renameat2(here, os.fsencode(one), here, os.fsencode(other), _EXCHANGE) == 0:
            return
        error = ctypes.get_errno()
        if error not in _CANNOT:
            raise OSError(error, os.strerror(error), str(other))
    old = other.with_name(f".{other.name}.old-{secrets.token_hex(6)}")
    other.rename(old)
    one.rename(other)
    old.rename(one)


def _remove_ours(path: Path) -> None:
    """Remove it; what belongs to another account stays, and the log says so."""
    try:
        _remove(path)
    except PermissionError as exc:
        _log.warning("%s cannot be removed: %s", path, exc.strerror)


def _remove(path: Path) -> None:
    """Remove a tree that somebody hostile wrote: of any depth, links not followed.

    Directories are moved to the top before they are emptied, so that it needs two descriptors and
    no recursion, and no path becomes too long.
    """
    with tree.opened(str(path)) as top:
        os.fchmod(top, 0o700)
        waiting = list(_emptied(top, top))
        while waiting:
            name = waiting.pop()
            below = tree.below(top, name)
            try:
                waiting += _emptied(below, top)
            finally:
                os.close(below)
            os.rmdir(name, dir_fd=top)
    path.rmdir()


def _emptied(directory: int, top: int) -> Iterator[str]:
    """Remove all but directories, which are moved to the top under new names."""
    with os.scandir(directory) as listing:
        found = list(listing)
    for each in found:
        if not each.is_dir(follow_symlinks=False):
            os.unlink(each.name, dir_fd=directory)
            continue
        name = f".removing-{secrets.token_hex(12)}"
        os.chmod(each.name, 0o700, dir_fd=directory)  # one without leave to write cannot be moved
        os.rename(each.name, name, src_dir_fd=directory, dst_dir_fd=top)
        yield name
