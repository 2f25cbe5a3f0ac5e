"""Making the state directory usable: its key and its database, once, whoever comes first."""

from __future__ import annotations

import fcntl
import hashlib
import secrets
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.db import DatabaseError

from runs.installation import prepare_home, write_once
from runs.refusal import Refusal


def prepare() -> None:
    """Create what is missing in SANDUK_HOME and bring the database to this version.

    Cheap when everything is there: one small file is compared. Raises Refusal.
    """
    home = prepare_home()
    key = home / "secret_key"
    try:
        if not key.exists():
            write_once(key, secrets.token_urlsafe(48))
        _migrate(home)
    except (OSError, DatabaseError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else str(exc)
        raise Refusal(f"the state directory {home} cannot be used: {reason}") from None


def _migrate(home: Path) -> None:
    mark, wanted = home / "schema", schema_digest()
    if _read(mark) == wanted:
        return
    with (home / "schema.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _read(mark) == wanted:
            return
        from django.core.management import call_command

        call_command("migrate", interactive=False, verbosity=0)
        mark.write_text(wanted)


def schema_digest() -> str:
    """Names every migration this version ships, and the database they went to."""
    names = [
        f"{config.label}/{file.stem}"
        for config in apps.get_app_configs()
        for file in sorted((Path(config.path) / "migrations").glob("[0-9]*.py"))
    ]
    database = settings.DATABASES["default"]
    names.append(f"{database['ENGINE']} {database.get('HOST', '')} {database['NAME']}")
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
