"""Backups: one file with all that this installation cannot get elsewhere, read back at once."""

from __future__ import annotations

import contextlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
from django.conf import settings
from django.db import connection, transaction

from assistants.models import Assistant, Delivery
from runs import audit, backup_age, clock, pulse
from runs.home import prepare
from runs.installation import install_id, prepare_home
from runs.refusal import Refusal
from sanduk_site import __version__, backup_database
from sanduk_site.backup_file import (
    DATABASE,
    FILES,
    KIND,
    LIST,
    SECRETS,
    TREES,
    Manifest,
    Writer,
    read_back,
)

_STAGING = ".restoring"
_UNDER_WAY = (Delivery.State.WAITING, Delivery.State.SENDING, Delivery.State.FAILED)


@dataclass(frozen=True, slots=True)
class Made:
    """A backup that was read back. `trouble`: what is wrong with the audit record it holds."""

    path: Path
    size: int
    manifest: Manifest
    trouble: str


def has_database_here() -> bool:
    return connection.vendor == "sqlite"


def make(target: Path, *, with_secrets: bool = False, with_database: bool = True) -> Made:
    """Write a backup of 0600 and read it back; only then it has its name.

    Args:
        target: a new file, or a directory in which it gets a name of its own.
        with_secrets: keys, the site's secret key, and who is signed in.
        with_database: without it, the files beside a database elsewhere.

    Raises Refusal, OSError.
    """
    if with_database and not has_database_here():
        raise Refusal(
            "the database is PostgreSQL, which has a tool of its own: pg_dump -Fc -f sanduk.dump "
            "DATABASE; then sanduk backup --without-database for what is beside it"
        )
    target = _file(target)
    with tempfile.TemporaryDirectory(prefix=".sanduk-backup-", dir=target.parent) as place:
        draft = Path(place) / "backup"
        _write(draft, Path(place), with_secrets=with_secrets, with_database=with_database)
        manifest, trouble = verify(draft)
        try:
            os.link(draft, target)
        except FileExistsError:
            raise _there(target) from None
    pulse.stamp(backup_age.NAME)
    size = target.stat().st_size
    audit.record("backup.make", "site", file=target.name, bytes=size, secrets=with_secrets)
    return Made(target, size, manifest, trouble)


def verify(path: Path) -> tuple[Manifest, str]:
    """Read a backup whole; what is wrong with the audit record in it, or "".

    Raises Refusal when it could not be restored by this sanduk, OSError.
    """
    with tempfile.TemporaryDirectory(prefix=".sanduk-backup-", dir=path.absolute().parent) as place:
        into = Path(place)
        manifest = read_back(path, into, only=frozenset({DATABASE, "audit-head"}))
        return manifest, _checked(manifest, into)


def restore(path: Path) -> tuple[Manifest, int]:
    """Make a backup this installation's state; with how many deliveries may have gone out since.

    Raises Refusal: something is here already, or it is no backup of what could be here. OSError.
    """
    home: Path = settings.SANDUK_HOME
    if home.is_dir() and any(home.iterdir()):
        raise Refusal(
            f"{home} is not empty, and a restore replaces nothing: name another SANDUK_HOME, or "
            "move that one away first"
        )
    prepare_home()
    staging = home / _STAGING
    try:
        staging.mkdir(mode=0o700)
        manifest = read_back(path, staging)
        _check_fits(manifest)
        _checked(manifest, staging)
        names = sorted(entry.name for entry in staging.iterdir())
        # the database last: without it there is no installation yet
        for name in sorted(names, key=lambda name: name == DATABASE):
            (staging / name).rename(home / name)
    finally:
        _remove(staging)
    prepare()
    with transaction.atomic():
        doubtful = _doubt_deliveries(manifest)
        audit.record("backup.restore", "site", made_at=manifest.made_at, doubtful=doubtful)
    return manifest, doubtful


def _doubt_deliveries(manifest: Manifest) -> int:
    """What was on its way when the backup was made may have arrived since: a person decides."""
    rows = Delivery.objects.filter(state__in=_UNDER_WAY)
    return rows.update(
        state=Delivery.State.UNKNOWN,
        ended_at=clock.now(),
        error=f"restored from a backup of {manifest.made_at}: it may have gone out since",
    )


def _check_fits(manifest: Manifest) -> None:
    has_one = DATABASE in manifest.files
    if has_one and not has_database_here():
        raise Refusal("the backup holds a SQLite database, and DATABASE_URL names another one")
    if not has_one and has_database_here():
        raise Refusal(
            "the backup holds no database: put that back with pg_restore, and name it in "
            "DATABASE_URL"
        )


def _checked(manifest: Manifest, into: Path) -> str:
    if DATABASE not in manifest.files:
        return ""
    backup_database.check(into / DATABASE)
    return backup_database.audit_trouble(into / DATABASE, into / "audit-head")


def _file(target: Path) -> Path:
    """The file to be made. Raises Refusal where it cannot be, or would be lost with the rest."""
    home: Path = settings.SANDUK_HOME
    if target.is_dir():
        target = target / f"sanduk-{clock.now():%Y%m%d-%H%M%S}.tar.gz"
    if target.exists() or target.is_symlink():
        raise _there(target)
    parent = target.absolute().parent
    if not parent.is_dir():
        raise Refusal(f"{parent} is no directory")
    if parent.resolve().is_relative_to(home.resolve()):
        raise Refusal(f"{target} would be in {home}, and lost with it; name another place")
    return target


def _there(target: Path) -> Refusal:
    return Refusal(f"{target} is there already; a backup replaces nothing")


def _write(draft: Path, place: Path, *, with_secrets: bool, with_database: bool) -> None:
    home: Path = settings.SANDUK_HOME
    installation = install_id()  # made now, where no run has needed it yet
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as tar:
            writer = Writer(tar)
            # first, with the last hash: what the copy of the database then holds is later
            for name in (*FILES, *(SECRETS if with_secrets else ())):
                writer.file(home / name, name)
            applied: tuple[str, ...] = ()
            if with_database:
                copied = place / DATABASE
                source = Path(str(connection.settings_dict["NAME"]))
                backup_database.copy(source, copied, with_sessions=with_secrets)
                applied = backup_database.migrations(copied)
                writer.file(copied, DATABASE)
                copied.unlink()
            # then what its rows name: contents are written before the row that names them
            for name in TREES:
                if (home / name).is_dir():
                    writer.tree(home / name, name, without=frozenset({"bodies"}))
            manifest = Manifest(
                kind=KIND,
                version=__version__,
                made_at=clock.now().isoformat(timespec="seconds"),
                installation=installation,
                with_secrets=with_secrets,
                migrations=applied,
                left_out=tuple(_left_out(with_secrets=with_secrets, with_database=with_database)),
                directories=tuple(writer.directories),
                files=writer.files,
            )
            writer.text(LIST, msgspec.json.encode(manifest))
        file.flush()
        os.fsync(file.fileno())


def _left_out(*, with_secrets: bool, with_database: bool) -> Iterator[str]:
    """What somebody may miss, in words."""
    if not with_database:
        yield "the database: pg_dump"
    if not with_secrets:
        yield "keys, and who is signed in (--with-credentials)"
    yield "the bodies of requests to providers"
    for directory in Assistant.objects.present().values_list("directory", flat=True):
        yield f"the assistant's directory {directory}"


def _remove(staging: Path) -> None:
    """What is left of a restore, and the directory it was to be, when that is empty."""
    shutil.rmtree(staging, ignore_errors=True)
    with contextlib.suppress(OSError):
        staging.parent.rmdir()
