"""This installation: its id, its state directory, and what must hold before anything is written."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from pathlib import Path

from django.conf import settings

from runs.refusal import HostRefusal, Refusal

_ID = re.compile("[0-9a-f]{16}")


def prepare_home() -> Path:
    """Make SANDUK_HOME (0700) when it is missing. Raises Refusal when it cannot be used."""
    home: Path = settings.SANDUK_HOME
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if home.stat().st_mode & 0o077 and home.stat().st_uid == os.geteuid():
            home.chmod(0o700)
    except OSError as exc:
        raise Refusal(f"SANDUK_HOME {home} cannot be used: {exc.strerror}") from None
    return home


def require_room() -> None:
    """Raise Refusal when SANDUK_HOME's file system is all but full: a run could not be recorded."""
    free = shutil.disk_usage(settings.SANDUK_HOME).free // 2**20
    if free < settings.SANDUK_MIN_FREE_MB:
        raise HostRefusal(
            f"only {free} MB are free in {settings.SANDUK_HOME}; make room, or lower "
            f"SANDUK_MIN_FREE_MB ({settings.SANDUK_MIN_FREE_MB})"
        )


def install_id() -> str:
    """The id every container of this installation carries; made once, on first use.

    Raises Refusal when the file holds something else: an empty label would match the containers
    of every installation.
    """
    path: Path = settings.SANDUK_HOME / "install-id"
    try:
        if not path.exists():
            write_once(path, secrets.token_hex(8))
    except OSError as exc:
        raise Refusal(f"{path} cannot be written: {exc.strerror}") from None
    try:
        found = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is no text"
        raise Refusal(f"{path} cannot be read: {reason}") from None
    if not _ID.fullmatch(found):
        raise Refusal(
            f"{path} does not hold this installation's id (16 hexadecimal digits); put it back, "
            "`sanduk.install` on its containers names it, or remove the file where there are none"
        )
    return found


def write_once(path: Path, text: str) -> None:
    """Create a 0600 file with all of its content or not at all; one that exists stays."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink(missing_ok=True)


def run_directory(uid: str) -> Path:
    """Where a run's own files live, outside every mount."""
    path: Path = settings.SANDUK_HOME / "runs" / uid
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path
