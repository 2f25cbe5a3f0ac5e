"""The database of a backup: copied while others write, and looked through where it lies."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from django.apps import apps
from django.db.migrations.loader import MigrationLoader

from runs import audit_head
from runs.refusal import Refusal


def copy(source: Path, target: Path, *, with_sessions: bool) -> None:
    """A copy as of one moment, whoever writes meanwhile.

    Args:
        with_sessions: keep who is signed in: their sessions' keys are as good as passwords.

    Raises Refusal.
    """
    try:
        with _opened(source) as there, contextlib.closing(sqlite3.connect(target)) as here:
            there.backup(here)
            here.execute("PRAGMA journal_mode=DELETE")
            if not with_sessions:
                here.execute("PRAGMA secure_delete=ON")
                here.execute("DELETE FROM django_session")
                here.commit()
    except sqlite3.Error as exc:
        raise Refusal(f"the database {source} cannot be copied: {exc}") from None


def migrations(path: Path) -> tuple[str, ...]:
    """Each that a database has, as "app.name". Raises Refusal when it cannot be read."""
    try:
        with _opened(path) as found:
            rows = found.execute("SELECT app, name FROM django_migrations ORDER BY id").fetchall()
    except sqlite3.Error as exc:
        raise _unreadable(exc) from None
    return tuple(f"{app}.{name}" for app, name in rows)


def check(path: Path) -> None:
    """Raise Refusal when it is damaged, or of a later sanduk than this."""
    try:
        with _opened(path) as found:
            told = [row[0] for row in found.execute("PRAGMA quick_check(1)")]
            dangling = found.execute("PRAGMA foreign_key_check").fetchone()
    except sqlite3.Error as exc:
        raise _unreadable(exc) from None
    if told != ["ok"] or dangling is not None:
        raise Refusal(f"the database of the backup is damaged: {told[0] if told else 'no answer'}")
    check_version(migrations(path))


def check_version(applied: tuple[str, ...]) -> None:
    """Raise Refusal when one of these migrations is not of this sanduk."""
    ours = {config.label for config in apps.get_app_configs()}
    loader = MigrationLoader(None, ignore_no_migrations=True)
    shipped = {f"{app}.{name}" for app, name in loader.disk_migrations or ()}
    replaced = {
        f"{app}.{name}"
        for each in (loader.disk_migrations or {}).values()
        for app, name in each.replaces
    }
    later = [
        each
        for each in applied
        if each.partition(".")[0] in ours and each not in shipped | replaced
    ]
    if later:
        raise Refusal(
            f"the backup is of a later sanduk than this ({later[0]}): it belongs to its version"
        )


def audit_trouble(path: Path, head: Path) -> str:
    """What is wrong with the audit record of a copy; "" when it stands.

    Args:
        head: the file with the last hash, of the same backup.
    """
    number, before, hashes = 0, "", {}
    try:
        with _opened(path) as found:
            for row in found.execute(
                "SELECT number, previous, sha256, at, actor_id, account, action, subject, detail "
                "FROM runs_auditevent ORDER BY number"
            ):
                if (row[0], row[1]) != (number + 1, before) or _hash(row) != row[2]:
                    return f"event {row[0]} is not as it was written, or one before it is missing"
                number, before = row[0], row[2]
                hashes[number] = before
    except (sqlite3.Error, ValueError) as exc:
        return f"it cannot be read: {exc}"
    try:
        last, sha256 = head.read_text().split()
        is_there = hashes.get(int(last)) == sha256
    except FileNotFoundError:
        is_there = not number
    except (OSError, ValueError):
        is_there = False
    return "" if is_there else "its end is not the one whose hash was kept outside"


def _hash(row: tuple[int, str, str, str, int | None, str, str, str, str]) -> str:
    at = dt.datetime.fromisoformat(row[3]).replace(tzinfo=dt.UTC)
    facts = {
        "at": at.isoformat(timespec="microseconds"),
        "actor": row[4],
        "account": row[5],
        "action": row[6],
        "subject": row[7],
        "detail": json.loads(row[8]),
    }
    return audit_head.chained(row[0], row[1], facts)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """To be read alone."""
    with contextlib.closing(
        sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=20)
    ) as found:
        yield found


def _unreadable(error: sqlite3.Error) -> Refusal:
    return Refusal(f"the database of the backup cannot be read: {error}")
