"""Rows and real repositories for the tests of the gate; a test names only what it is about."""

from __future__ import annotations

import secrets
import subprocess
from pathlib import Path
from typing import Any

import pytest

from changes import attempts, bundle, gate, landing, rules
from changes.gate import Accepting
from changes.models import Attempt, Change, Repository, TestRun
from changes.store import Store
from changes.tree import Result
from runs.verdicts import Person
from tests.changes.trees import tree_of

OWNER = "host:1:here"
LEASE_S = 30.0
GIT = {
    "PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "anna", "GIT_AUTHOR_EMAIL": "anna@example.org",
    "GIT_COMMITTER_NAME": "anna", "GIT_COMMITTER_EMAIL": "anna@example.org",
}  # fmt: skip


def run_git(repository: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=repository, env=GIT, capture_output=True, text=True, check=True,
        timeout=30,
    )  # fmt: skip
    return done.stdout.strip()


def make_git(directory: Path, files: dict[str, str] | None = None) -> Path:
    directory.mkdir(parents=True)
    run_git(directory, "init", "-q", "-b", "main")
    for name, text in (files or {"README.md": "hello\n"}).items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    run_git(directory, "add", "-A")
    run_git(directory, "commit", "-q", "-m", "first")
    return directory


def make_repository(path: str = "") -> Repository:
    return Repository.objects.at(path or f"/srv/{secrets.token_hex(6)}")


def make_change(repository: Repository | None = None, **fields: Any) -> Change:
    fields.setdefault("task", "tidy up")
    fields.setdefault("agent", "scripted")
    return Change.objects.create(repository=repository or make_repository(), **fields)


def make_attempt(change: Change, **fields: Any) -> Attempt:
    """A row alone, with nothing behind it."""
    facts = {
        "number": Attempt.objects.filter(change=change).count() + 1, "task": "tidy up",
        "base_commit": "1" * 40, "base_tree": "2" * 40, "tree": secrets.token_hex(20),
        "digest": secrets.token_hex(32),
    }  # fmt: skip
    return Attempt.objects.create(change=change, **{**facts, **fields})


def reviewed(change: Change | None = None, **fields: Any) -> Change:
    """A change with one attempt that waits for a person; rows alone."""
    change = change or make_change()
    assert Change.objects.claim(change.pk, OWNER, LEASE_S)
    assert Change.objects.present(change.pk, OWNER, make_attempt(change, **fields))
    change.refresh_from_db()
    return change


class Project:
    """A real repository, and changes to it as they come back from an agent."""

    def __init__(self, directory: Path) -> None:
        self.path = make_git(directory)
        self.repository = make_repository(str(self.path))
        self.base = run_git(self.path, "rev-parse", "HEAD")

    @property
    def store(self) -> Store:
        return attempts.store_of(self.repository, self.base)

    def rule(self, text: str) -> None:
        rules.file_of(self.repository.uid).parent.mkdir(parents=True, exist_ok=True)
        rules.file_of(self.repository.uid).write_text(text)

    def change(self, files: dict[str, Any] | None = None, **fields: Any) -> Change:
        """A change in review whose result holds these files beside the base's."""
        change = make_change(self.repository, **fields)
        assert Change.objects.claim(change.pk, OWNER, LEASE_S)
        self.attempt(change, files or {"new.py": "x = 1\n"})
        change.refresh_from_db()
        return change

    def attempt(self, change: Change, files: dict[str, Any], **more: Any) -> Attempt | None:
        provided = bundle.provide(self.path, self.base, directory=self.path.parent)
        self.store.take(provided.bundle, provided.base_commit, provided.shallow)
        tree = tree_of(self.store, {"README.md": "hello\n", **files})
        result = Result(tree, (), (), (), 0, 0)
        return attempts.write(change, OWNER, self.base, result, task=change.task, **more)

    def tested(self, change: Change, command: str, outcome: str = "passed") -> TestRun:
        attempt = change.attempt
        row = TestRun.objects.create(attempt=attempt, digest=attempt.digest, command=command)
        code = 0 if outcome == "passed" else 1
        assert TestRun.objects.finish(row.pk, outcome, exit_code=code)
        return row


def killed_after_landing(change: Change) -> str:
    """Land it in a process that dies before it writes that down; returns the commit it made."""
    real, made = landing.land, []

    def killed(*words: Any, **how: Any) -> str:
        made.append(real(*words, **how))
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(landing, "land", killed)
        with pytest.raises(KeyboardInterrupt):
            gate.land(change.uid)
    return made[0]


ANNA = ("Anna", "anna@example.org")
SOMEBODY = Person(account="anna")


def yes(**words: Any) -> Accepting:
    return Accepting(**{"committer": ANNA, **words})


def state(change: Change) -> str:
    change.refresh_from_db()
    return change.state
