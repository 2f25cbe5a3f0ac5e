"""Making the state directory usable: its key and its database, once, whoever comes first."""

from __future__ import annotations

import fcntl
import hashlib
import secrets
import tempfile
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.db import DatabaseError

from runs.installation import prepare_home, write_once
from runs.refusal import Refusal

SAMPLE = "sample"
_PAGES = 256 * 1024  # bytes: what one transaction of ours may take


def prepare() -> None:
    """Create what is missing in SANDUK_HOME and bring the database to this version.

    Cheap when everything is there: one small file is compared. Raises Refusal.
    """
    home = prepare_home()
    key = home / "secret_key"
    try:
        if not key.exists():
            write_once(key, secrets.token_urlsafe(48))
        if settings.SANDUK_KEY_IS_PASSING:
            # the first process here read its settings before there was a key to sign with
            settings.SECRET_KEY, settings.SANDUK_KEY_IS_PASSING = key.read_text().strip(), False
        _migrate(home)
    except OSError as exc:
        raise Refusal(f"the state directory {home} cannot be used: {exc.strerror}") from None
    except DatabaseError as exc:
        raise Refusal(why_unusable(exc)) from None


def sample_directory() -> Path:
    """Where the first run's sample assistant is: beside, as no agent may work inside of it."""
    home: Path = settings.SANDUK_HOME
    return home.with_name(f"{home.name}-{SAMPLE}")


def why_unusable(error: DatabaseError) -> str:
    """A database's refusal with its place, and with the file system's reason where that is it.

    SQLite says "unable to open database file" for a full disk and a read-only one alike.
    """
    database = settings.DATABASES["default"]
    if not database["ENGINE"].endswith("sqlite3"):
        return f"the database cannot be used: {error}"
    file = Path(str(database["NAME"]))
    reason = _why_unwritable(file.parent)
    if reason:
        return f"nothing can be written in {file.parent}, where the database is: {reason}"
    return f"the database {file} cannot be used: {error}"


def _why_unwritable(directory: Path) -> str:
    """Why a file of a few pages cannot be made there; "" when it can."""
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(bytes(_PAGES))
    except OSError as exc:
        return exc.strerror or str(exc)
    return ""


def _migrate(home: Path) -> None:
    mark, wanted = home / "schema", schema_digest()
    if _read(mark) == wanted:
        return
    with (home / "schema.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _read(mark) == wanted:
            return
        from django.core.management import call_command

        _check_not_newer()
        call_command("migrate", interactive=False, verbosity=0)
        mark.write_text(wanted)


def _check_not_newer() -> None:
    """A later sanduk may have given the tables columns that this one would leave empty."""
    from django.db import connection
    from django.db.migrations.loader import MigrationLoader

    loader = MigrationLoader(connection)
    replaced = {name for each in loader.disk_migrations.values() for name in each.replaces}
    unknown = sorted(
        "/".join(each)
        for each in set(loader.applied_migrations) - set(loader.disk_migrations) - replaced
        if each[0] in loader.migrated_apps
    )
    if unknown:
        raise Refusal(
            f"the database was brought on by a newer sanduk (it has {unknown[-1]}): use that one,"
            " or a SANDUK_HOME of its own for this one"
        )


def schema_digest() -> str:
    """Names every migration this version ships, and the database they went to."""
    names = [
        f"{config.label}/{file.stem}"
        for config in apps.get_app_configs()
        for file in sorted((Path(config.path) / "migrations").glob("[0-9]*.py"))
    ]
    database = settings.DATABASES["default"]
    place = (database.get(key) or "" for key in ("ENGINE", "HOST", "PORT", "NAME"))
    names.append(" ".join([*map(str, place), str(database.get("OPTIONS", {}).get("host", ""))]))
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
