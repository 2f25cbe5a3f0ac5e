"""scripts/postgres-up: a server that nobody else can reach, as often as it is asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.accounts import open_directory
from tests.databases import postgres

__all__ = ["postgres"]
SCRIPT = Path(__file__).parents[2] / "scripts" / "postgres-up"


def run(*words: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [str(word) for word in words],
        env={**kept, **env}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.fixture
def place() -> Iterator[Path]:
    """A short path: a socket's has at most 107 bytes."""
    with open_directory() as found:
        yield found / "server"
        run(SCRIPT, "--down", SANDUK_POSTGRES_DIR=str(found / "server"))


@pytest.mark.usefixtures("postgres")
def test_it_comes_up_on_a_private_socket_alone_and_goes_with_its_data(place: Path) -> None:
    first = run(SCRIPT, "--installed", SANDUK_POSTGRES_DIR=str(place))
    again = run(SCRIPT, "--installed", SANDUK_POSTGRES_DIR=str(place))
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert first.stdout == again.stdout
    assert "starting" in first.stderr
    assert "answers" in again.stderr

    with psycopg.connect(first.stdout.strip()) as connection:
        shown = "SELECT current_setting('listen_addresses'), current_setting('server_encoding')"
        assert connection.execute(shown).fetchone() == ("", "UTF8")
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        assert row is not None
        assert Path(f"/proc/{row[0]}").stat().st_uid != 0
    socket = next(place.glob("**/.s.PGSQL.*[0-9]"))
    assert socket.parent.stat().st_mode & 0o777 == 0o700
    assert socket.parent.stat().st_uid == Path(socket).stat().st_uid != 0 or os.geteuid() != 0

    done = run(SCRIPT, "--down", SANDUK_POSTGRES_DIR=str(place))
    assert done.returncode == 0, done.stderr
    assert not place.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(first.stdout.strip())


def without_programs(tmp_path: Path, user: str, *tools: str) -> tuple[Path, Path]:
    """The script, and a PATH, for a machine on which no PostgreSQL is installed."""
    script = tmp_path / "postgres-up"
    text = SCRIPT.read_text()
    for where in ("/usr/lib/postgresql/", "/usr/pgsql-", "/usr/libexec/postgresql"):
        assert where in text
        text = text.replace(where, f"{tmp_path}/nowhere/")
    script.write_text(text)
    script.chmod(0o755)
    programs = tmp_path / "programs"
    programs.mkdir()
    for word in ("sh", "sed", "cat", "dirname", "mkdir"):
        (programs / word).symlink_to(shutil.which(word) or "/bin/false")
    for name, says in {"id": user, **dict.fromkeys(tools, "")}.items():
        (programs / name).write_text(f"#!/bin/sh\necho {says}\n")
        (programs / name).chmod(0o755)
    return script, programs


@pytest.mark.parametrize(
    ("user", "words", "tools", "told"),
    [
        ("4242", [], ["apt-get"], "  sudo apt-get install -y --no-install-recommends postgresql\n"),
        ("0", ["--installed"], ["apt-get"], "  apt-get install -y --no-install-recommends"),
        ("4242", [], ["dnf"], "sudo dnf install -y postgresql-server"),
        ("0", [], ["apk"], "sudo apk add postgresql"),
        ("4242", [], [], "install the server of PostgreSQL"),
    ],
)
def test_where_it_is_not_installed_the_command_is_told(
    tmp_path: Path, user: str, words: list[str], tools: list[str], told: str
) -> None:
    if "apt-get" in tools and not Path("/etc/debian_version").exists():
        pytest.skip("not Debian or Ubuntu")
    script, programs = without_programs(tmp_path, user, *tools)
    done = run(script, *words, PATH=str(programs), HOME="/nowhere")

    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["postgres-up", "programs"]


def test_help_explains_and_other_words_are_refused() -> None:
    assert run(SCRIPT, "--help").stdout.startswith("Usage: scripts/postgres-up")
    done = run(SCRIPT, "--frobnicate")
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: ")


@pytest.mark.parametrize(("place", "why"), [("data", "absolute"), ("/" + "x" * 90, "too long")])
def test_a_directory_that_cannot_work_is_refused(place: str, why: str) -> None:
    done = run(SCRIPT, "--installed", SANDUK_POSTGRES_DIR=place)
    assert done.returncode == 1
    assert why in done.stderr


def test_the_script_is_clean() -> None:
    if not (shellcheck := shutil.which("shellcheck")):
        pytest.skip("shellcheck is not installed")
    done = run(shellcheck, SCRIPT)
    assert done.returncode == 0, done.stdout
