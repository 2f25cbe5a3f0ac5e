"""A backup of an installation on PostgreSQL is two files, and both put back make another one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.databases import fresh_database, postgres
from tests.site.test_backup import Home

__all__ = ["postgres"]
CHANGE = """
import django; django.setup()
from runs.home import prepare
prepare()
from changes.models import Change, Repository
there = Repository.objects.at("/srv/code/shop")
Change.objects.create(
    uid="c0ffee123456", repository=there, kind="task", task="tidy up", base_ref="main",
    base_commit="0" * 40, agent="pi", order={},
)
"""


def tool(name: str) -> str:
    """One of PostgreSQL's programs: those of the server's own version come before PATH's."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    path = str(found[-1]) if found else shutil.which(name)
    if path is None:
        pytest.skip(f"there is no {name}")
    return path


@pytest.fixture
def urls(postgres: str) -> Iterator[tuple[str, str]]:
    with fresh_database(postgres) as one, fresh_database(postgres) as other:
        yield one, other


def home(directory: Path, url: str) -> Home:
    made = Home(directory)
    made.env["DATABASE_URL"] = url
    return made


def done(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=120)


@pytest.mark.timeout(600)
def test_both_files_put_back_make_the_same_installation(urls: tuple[str, str], tmp_path: Path):
    first = home(tmp_path / "first", urls[0])
    first.home.mkdir(mode=0o700)
    first.python("-c", CHANGE)
    artifact = first.home / "changes" / "c0ffee123456" / "artifacts" / "1"
    artifact.parent.mkdir(parents=True)
    artifact.write_text("a picture")

    assert "pg_dump" in first.sanduk("backup", str(tmp_path / "x.tar.gz"), code=2)
    assert not (tmp_path / "x.tar.gz").exists()
    done(tool("pg_dump"), "-Fc", "-f", str(tmp_path / "sanduk.dump"), urls[0])
    beside = tmp_path / "beside.tar.gz"
    first.sanduk("backup", str(beside), "--without-database")

    done(tool("pg_restore"), "--no-owner", "-d", urls[1], str(tmp_path / "sanduk.dump"))
    again = home(tmp_path / "again", urls[1])
    again.sanduk("restore", str(beside))

    assert (again.home / artifact.relative_to(first.home)).read_text() == "a picture"
    assert (again.home / "install-id").read_text() == (first.home / "install-id").read_text()
    assert "tidy up" in again.sanduk("change", "list")
    again.sanduk("audit", "verify")
    with psycopg.connect(urls[1]) as connection:
        [(counted,)] = connection.execute("SELECT count(*) FROM changes_change").fetchall()
    assert counted == 1
