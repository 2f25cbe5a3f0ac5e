"""What the tests of changes share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from runs.reconcile import Reconciled
from tests.changes.commanding import Terminal
from tests.changes.making import Scene, repository, scene
from tests.changes.rows import SOMEBODY, Project, run_git
from tests.changes.stand_in import TOKEN, GitHub, serving


@pytest.fixture
def made(tmp_path: Path) -> Scene:
    """A clone of a small repository with rules, before an agent came."""
    files = {
        ".gitignore": b"dist/\n*.log\n/only-dirs/\n",
        "run.sh": b"#!/bin/sh\n",
        "lib/a.py": b"a\n",
        "lib/b.py": b"b\n",
        "kept.log": b"tracked though ignored\n",
    }
    return scene(tmp_path / "w", repository(tmp_path / "r", files))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A real repository whose changes come before a person; one secret is held on this host."""
    monkeypatch.setattr(settings, "SANDUK_HOME", tmp_path / "home")
    (tmp_path / "home").mkdir()
    monkeypatch.setattr("runs.secret_scan.held_secrets", lambda: ({"K": "held-secret-77"}, []))
    return Project(tmp_path / "project")


@pytest.fixture
def github(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    """A stand-in that the project's origin is; the base has a commit before it, as in life."""
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    run_git(project.path, "commit", "-q", "--allow-empty", "-m", "second")
    project.base = run_git(project.path, "rev-parse", "HEAD")
    with serving(tmp_path, project.path) as found:
        monkeypatch.setattr(settings, "SANDUK_GITHUB_API", found.api)
        run_git(project.path, "remote", "add", "origin", found.remote)
        yield found


@pytest.fixture
def changed(made: Scene) -> Scene:
    """The same after an agent edited it."""
    made.write({"new/file.py": b"new\n", "README.md": b"edited\n", "data": bytes(range(256))})
    (made.clone / "run.sh").chmod(0o755)
    (made.clone / "link").symlink_to("/etc/passwd")
    return made


@pytest.fixture
def sanduk(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """sanduk("show", ID): the command, on the test's database."""
    monkeypatch.setattr("runs.management.terminal.prepare", lambda: None)
    monkeypatch.setattr("runs.management.terminal.reconcile", Reconciled)
    monkeypatch.setattr("runs.audit.account", lambda: SOMEBODY.account)
    return Terminal(capfd)
