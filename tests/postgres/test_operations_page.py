"""The lines of docs/operations.md that put sanduk on PostgreSQL, as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psycopg
import pytest

from tests.databases import postgres
from tests.processes import ROOT, environment

__all__ = ["postgres"]
DRIVERLESS = """
import importlib.util, runpy, sys
there = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if "psycopg" in name else there(name, *more)
sys.argv = ["manage.py", "check"]
runpy.run_path("manage.py", run_name="__main__")
"""


@pytest.fixture
def commands() -> list[str]:
    page = (ROOT / "docs" / "operations.md").read_text()
    block = re.search(r"^## PostgreSQL\n.*?```sh\n(.*?)```", page, re.DOTALL | re.MULTILINE)
    assert block is not None
    return block[1].splitlines()


def test_the_lines_lead_to_a_database_that_answers(
    commands: list[str], postgres: str, tmp_path: Path
) -> None:
    install, *rest = commands
    assert install == "pip install 'sanduk[postgres]'"
    address = urlsplit(postgres)
    environ = environment(tmp_path / "state", "")
    del environ["DATABASE_URL"]
    # what stands for the reader's own server and account
    environ["PGHOST"] = unquote(address.netloc.rpartition("@")[2])
    environ["PGUSER"] = str(address.username)
    environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS sanduk WITH (FORCE)")
        try:
            script = "\n".join(["set -e", *rest, "sanduk audit --verify"])
            done = subprocess.run(
                ["sh", "-c", script],
                cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=120,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
        finally:
            connection.execute("DROP DATABASE IF EXISTS sanduk WITH (FORCE)")
    assert not list((tmp_path / "state").glob("*.sqlite3"))


def test_a_missing_driver_is_named_with_the_command_that_installs_it(
    commands: list[str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DRIVERLESS],
        cwd=ROOT, env=environment(tmp_path / "state", "postgres:///sanduk"),
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode != 0
    assert f"driver for it is not installed: {commands[0]}" in done.stderr
