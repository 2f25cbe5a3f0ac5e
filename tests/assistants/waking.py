"""A wakeup in tests: an assistant in a directory of its own, and a run that ends as it is told."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assistants import collaborators, wakeups
from assistants.config import Config
from assistants.models import Assistant, OutboxItem, Wakeup
from runs import admission, box, clock, installation
from runs.models import Run
from tests.accounts import ORDINARY
from tests.factories import make_assistant, make_wakeup

Ends = dict[str, Any]


def assistant_in(place: Path, *, text: str = "look around", **fields: Any) -> Assistant:
    """An assistant whose files are there. `fields` are settings, and columns of its row."""
    row = {name: fields.pop(name) for name in ("name", "failures", "not_before") if name in fields}
    name = row.pop("name", "daily")
    home = place / name
    (home / "workspace").mkdir(parents=True)
    if os.geteuid() == 0:  # no agent runs as root
        os.chown(home / "workspace", ORDINARY, ORDINARY)
    (home / "brief.md").write_text(text)
    settings = {"agent": "pi", "provider": "rehearsal", "runtime": "docker", **fields}
    return make_assistant(name, config=Config(**settings), directory=str(home), **row)


def gate_of(assistant: Assistant, script: str, name: str = "gate") -> None:
    file = Path(assistant.directory) / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


class Runs:
    """Takes the place of `lifecycle.execute`: each run ends at once, as `ends` says."""

    def __init__(self) -> None:
        self.ends: Ends = {"outcome": "succeeded", "report": "all is well"}
        self.seen: list[Run] = []
        self.meanwhile: Callable[[Run], None] = lambda run: None

    def __call__(self, run: Run, plan: Any, console: Any) -> Run:
        self.seen.append(run)
        self.meanwhile(run)
        facts = {"state": "ended", "exit_code": 0, "ended_at": clock.now(), **self.ends}
        facts.setdefault("report_state", "saved" if facts.get("report") else "missing")
        Run.objects.filter(pk=run.pk).update(lease_owner="", lease_until=None, **facts)
        run.refresh_from_db()
        return run


class Memory:
    """What was asked of memory, in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.failing: set[str] = set()

    def asked(self, moment: str) -> Callable[[Assistant, Wakeup], None]:
        def note(assistant: Assistant, wakeup: Wakeup) -> None:
            self.calls.append(moment)
            if moment in self.failing:
                raise OSError(28, "No space left on device")

        return note


def write_item(wakeup: Wakeup, body: str, config: Config) -> None:
    OutboxItem.objects.create(assistant=wakeup.assistant, wakeup=wakeup, body=body, sha256="0" * 64)


def make_room(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state directory, memory enough, and a runtime directory in `place`."""
    installation.prepare_home()
    monkeypatch.setattr(admission, "available_bytes", lambda: 2**40)
    (place / "runtime").mkdir(mode=0o700)
    monkeypatch.setattr(box, "runtime_directory", lambda: place / "runtime")


@pytest.fixture
def runs(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Wakeups whose runs end as the test says. Their plans are real, no engine is asked."""
    make_room(tmp_path, monkeypatch)
    made = Runs()
    monkeypatch.setattr(wakeups, "execute", made)
    return made


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    made = Memory()
    monkeypatch.setattr(collaborators, "before_wakeup", made.asked("before"))
    monkeypatch.setattr(collaborators, "after_wakeup", made.asked("after"))
    monkeypatch.setattr(collaborators, "write_item", write_item)
    return made


def woken(assistant: Assistant, **fields: Any) -> Wakeup:
    """Wake it here, to the end."""
    asked = make_wakeup(assistant, **fields)
    ended = wakeups.wake(asked.pk)
    assert ended is not None
    return ended
