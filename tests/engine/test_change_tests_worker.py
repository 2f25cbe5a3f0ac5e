"""A worker that is up runs the tests of a change that were left to it."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engine.running import Installation, eventually

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
ASK = """
import sys
from pathlib import Path
import django
django.setup()
from changes import testing_later
from tests.changes.rows import SOMEBODY, Project
change = Project(Path(sys.argv[1])).change({"new.py": "print(6 * 7)\\n"})
testing_later.ask(change, SOMEBODY, "python3 new.py")
"""


def rows_of(made: Installation) -> list[dict[str, Any]]:
    with contextlib.closing(sqlite3.connect(made.home / "sanduk.sqlite3")) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM changes_testrun")]


def test_tests_that_were_left_to_the_worker_are_run_by_it(docker: Installation):
    docker.environment["SANDUK_RUNTIME"] = "docker"
    worker = docker.start("worker").until("the worker is up")
    environment = {
        **docker.environment,
        "DJANGO_SETTINGS_MODULE": "sanduk_site.settings",
        "PYTHONPATH": str(ROOT),
    }
    place = str(docker.ground / "project")
    subprocess.run([sys.executable, "-c", ASK, place], env=environment, check=True, timeout=60)

    eventually(lambda: [row["outcome"] for row in rows_of(docker)] not in ([], [""]), 90)

    (row,) = rows_of(docker)
    assert (row["outcome"], row["output"], row["exit_code"]) == ("passed", "42\n", 0), row
    assert docker.row["trigger"] == "change"
    worker.process.terminate()
    worker.end()
    docker.nothing_left(within_s=5)
