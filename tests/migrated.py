"""A database that is migrated once and copied for each installation: each is there 3 s earlier."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from django.conf import settings

from runs.home import schema_digest

NAME = "sanduk.sqlite3"


def lay_out(home: Path) -> None:
    """Give a new state directory the database that its first command would have made."""
    shutil.copy(_migrated(), home / NAME)
    (home / "schema").write_text(_digest(home / NAME))


def prepared(home: Path) -> Path:
    """The same for one that is made here, unless it is there."""
    if not home.exists():
        home.mkdir(mode=0o700, parents=True)
        lay_out(home)
    return home


@functools.cache
def _migrated() -> Path:
    place = Path(tempfile.mkdtemp(prefix="sk-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    home, copy = place / "home", place / NAME
    environment = {"PATH": os.environ["PATH"], "SANDUK_HOME": str(home), "HOME": str(place)}
    command = [sys.executable, "-m", "sanduk_site", "runs"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    with contextlib.closing(sqlite3.connect(home / NAME)) as database:
        database.execute("VACUUM INTO ?", (str(copy),))
    shutil.copymode(home / NAME, copy)
    return copy


def _digest(database: Path) -> str:
    """What the command will look for; if it were another, the command would migrate as ever."""
    configured = settings.DATABASES["default"]
    before = configured["NAME"]
    configured["NAME"] = str(database)
    try:
        return schema_digest()
    finally:
        configured["NAME"] = before
