"""The files of ours a container sees, and the short private directory they live in.

The directory is 0700 and ours alone; what is mounted from it are single files, readable for the
agent's uid, because nobody else can reach them on the host.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runs.engines.base import Mount
from runs.mounts import BOX, WORK
from runs.paths import runtime_place
from runs.refusal import HostRefusal, Refusal

ENTRY = Path(__file__).parent / "boxed" / "entry.sh"
SHELL = Path(__file__).parent / "boxed" / "shell.sh"
NOBODY = 65534
_NETWORK_FILES = {
    "resolv.conf": "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
}


def runtime_directory() -> Path:
    """Where sockets live: short, on a local file system, 0700 and ours.

    A socket's path is limited to 108 bytes, 104 on macOS, however long SANDUK_HOME is.

    Raises Refusal when it exists and belongs to somebody else.
    """
    uid = os.geteuid()
    base = runtime_place()
    try:
        base.mkdir(mode=0o700, exist_ok=True)
        facts = base.lstat()
    except OSError as exc:
        raise HostRefusal(f"{base} cannot be created: {exc.strerror}") from None
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != uid:
        raise Refusal(f"{base} belongs to somebody else; remove it, or set XDG_RUNTIME_DIR")
    if stat.S_IMODE(facts.st_mode) != 0o700:
        base.chmod(0o700)
    return base


@dataclass(frozen=True, slots=True)
class Box:
    """One run's private directory."""

    path: Path

    @property
    def relay_socket(self) -> Path:
        return self.path / "relay.sock"

    @property
    def egress_socket(self) -> Path:
        return self.path / "egress.sock"

    @property
    def rehearsal_socket(self) -> Path:
        return self.path / "rehearsal.sock"

    def network_files(self) -> tuple[Mount, ...]:
        """`resolv.conf` and `hosts` that make every look-up fail at once, read-only."""
        return tuple(Mount(str(self.path / name), f"/etc/{name}") for name in _NETWORK_FILES)

    def agent_files(
        self,
        *,
        uid: int,
        gid: int,
        home: str,
        env: Mapping[str, str],
        stdin: str | None,
        home_files: Mapping[str, str] | None = None,
        entry: Path = ENTRY,
    ) -> tuple[Mount, ...]:
        """The entry script, the environment it exports, the task, and a passwd for the uid.

        Args:
            home_files: text by path below the home; a shell's entry writes those not there yet.
        """
        passwd = (
            "root:x:0:0:root:/root:/bin/sh\n"
            f"agent:x:{uid}:{gid}:agent:{home}:/bin/sh\n"
            "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        )
        lines = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in env.items())
        return (
            self._file("entry", entry.read_text(), mode=0o755),
            self._file("env", lines, owner=(uid, gid)),
            self._file("stdin", stdin or "", owner=(uid, gid)),
            *self._home(home_files or {}, owner=(uid, gid)),
            Mount(str(self.write("passwd", passwd)), "/etc/passwd"),
        )

    def _home(self, texts: Mapping[str, str], *, owner: tuple[int, int]) -> tuple[Mount, ...]:
        """A script that puts these files into $HOME, which only the entry knows for certain."""
        if not texts:
            return ()
        lines = ["umask 077\n"]
        for name, text in texts.items():
            place = f'"$HOME"/{shlex.quote(name)}'
            lines.append(f'[ -e {place} ] || {{ mkdir -p "$(dirname {place})"; ')
            lines.append(f"printf %s {shlex.quote(text)} >{place}; }}\n")
        return (self._file("home", "".join(lines), owner=owner),)

    def covers(self, workspace: str, hidden: Sequence[str]) -> tuple[Mount, ...]:
        """An empty file or directory over each of these paths of the workspace."""
        mounts = []
        for path in hidden:
            try:
                is_directory = stat.S_ISDIR(os.lstat(f"{workspace}/{path}").st_mode)
            except OSError:
                continue  # it has gone since it was looked for
            cover = self.path / ("empty-directory" if is_directory else "empty-file")
            if is_directory:
                cover.mkdir(mode=0o555, exist_ok=True)
            elif not cover.exists():
                self.write(cover.name, "")
            mounts.append(Mount(str(cover), f"{WORK}/{path}"))
        return tuple(mounts)

    def _file(
        self, name: str, text: str, *, mode: int = 0o644, owner: tuple[int, int] | None = None
    ) -> Mount:
        return Mount(str(self.write(name, text, mode=mode, owner=owner)), f"{BOX}/{name}")

    def write(
        self, name: str, text: str, *, mode: int = 0o644, owner: tuple[int, int] | None = None
    ) -> Path:
        """Create one file; readable for `owner` alone where this account can arrange that."""
        path = self.path / name
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
            if owner is not None and os.geteuid() in (0, owner[0]):
                # the agent alone reads what may hold a secret
                if os.geteuid() == 0:
                    os.fchown(descriptor, *owner)
            else:
                os.fchmod(descriptor, mode)
        return path

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=False)


def make(uid: str) -> Box:
    """The directory of run `uid`. Raises Refusal when the host has no room or no right for it."""
    path = runtime_directory() / uid
    try:
        path.mkdir(mode=0o700)
    except OSError as exc:
        raise HostRefusal(f"{path} cannot be created: {exc.strerror}") from None
    box = Box(path)
    for name, text in _NETWORK_FILES.items():
        box.write(name, text)
    return box


def remove_left(uid: str) -> None:
    """Remove the directory of a run whose process is gone; nothing there is no error."""
    path = runtime_directory() / uid
    if path.is_dir() and not path.is_symlink():
        with contextlib.suppress(FileNotFoundError):  # two commands may clean up at once
            shutil.rmtree(path)
