"""The directory that sanduk is called from may be an agent's: nothing in it is ever imported."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runs.own_program import own_program
from tests.processes import environment

ROOT = Path(__file__).resolve().parents[2]
APPS = ("sanduk_site", "runs", "relay", "recipes", "assistants", "changes")
PLANTED = "from pathlib import Path; Path({!r}).touch(); raise SystemExit(9)\n"


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A directory in which an agent left modules of the names that sanduk imports first."""
    place = tmp_path / "workspace"
    (place / "sanduk_site").mkdir(parents=True)
    for name in ("sanduk_site/__init__.py", "django.py", "runs.py", "asyncio.py", "msgspec.py"):
        (place / name).write_text(PLANTED.format(str(tmp_path / "ran")))
    return place


def started_in(place: Path, argv: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    env = environment(home, f"sqlite:///{home}/x.sqlite3")
    # how a checkout that is not installed finds the program
    env["PYTHONPATH"] = str(ROOT)
    return subprocess.run(argv, cwd=place, env=env, capture_output=True, text=True, timeout=60)


def test_what_sanduk_starts_again_imports_nothing_from_where_it_stands(
    planted: Path, tmp_path: Path
):
    ended = started_in(planted, own_program("--version"), tmp_path / "home")

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("sanduk ")
    assert not (tmp_path / "ran").exists()


def test_a_start_that_did_would_be_noticed(planted: Path, tmp_path: Path):
    argv = [word for word in own_program("--version") if word != "-P"]

    assert started_in(planted, argv, tmp_path / "home").returncode == 9
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("app", APPS)
def test_python_is_never_started_on_what_lies_around(app: str):
    for file in (ROOT / app).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.List) or not node.elts:
                continue
            if ast.unparse(node.elts[0]) == "sys.executable":
                assert ast.unparse(node.elts[1]) in ("'-P'", "'-I'"), f"{file}:{node.lineno}"


def test_an_interpreter_that_is_told_so_tells_its_own_children():
    words = ["import subprocess; print(subprocess._args_from_interpreter_flags())"]

    said = subprocess.run(
        [sys.executable, "-P", "-c", *words], capture_output=True, text=True, env=dict(os.environ)
    )

    assert "-P" in said.stdout  # multiprocessing starts the workers of a cluster with these
