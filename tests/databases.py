"""What tests of several processes run on: a file of SQLite, and a real PostgreSQL."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def postgres() -> str:
    """The address of a PostgreSQL server's own database."""
    done = subprocess.run(
        [ROOT / "scripts" / "postgres-up", "--installed"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    if done.returncode == 2:
        pytest.skip(" ".join(done.stderr.split()))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@contextmanager
def fresh_database(server: str) -> Iterator[str]:
    """The address of an empty database on that server, which is gone afterwards."""
    import psycopg

    name = f"t_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        yield f"{server.rpartition('/')[0]}/{name}"
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of an empty database, of each kind there is."""
    if request.param == "sqlite":
        place = tmp_path_factory.mktemp("database")
        yield f"sqlite:///{quote(str(place / 'sanduk.sqlite3'))}"
        return
    with fresh_database(request.getfixturevalue("postgres")) as url:
        yield url
