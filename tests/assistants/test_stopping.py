"""A worker that is told to stop: what is beside it answers until nothing is waited for."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from assistants import worker

pytestmark = pytest.mark.django_db


class Recorder:
    """Stands for both clusters and for what is beside them: keeps what was asked of it."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.hurried: list[bool] = []

    def clusters(self, busy: Any, say: Any) -> Recorder:
        return self

    def mend(self) -> bool:
        os.kill(os.getpid(), signal.SIGTERM)
        return True

    def drain(self, seconds: float, hurried: Any) -> None:
        self.hurried.append(hurried())
        os.kill(os.getpid(), signal.SIGTERM)
        self.hurried.append(hurried())
        self.calls.append("drained")

    def stopping(self) -> None:
        self.calls.append("site told of it")

    def stop(self) -> None:
        self.calls.append("site asked to end")

    def end(self) -> None:
        self.calls.append("site ended")


@pytest.fixture
def parts(monkeypatch):
    made = Recorder()
    monkeypatch.setattr(worker, "Clusters", made.clusters)
    monkeypatch.setattr(worker.ticking, "end_lost", worker.ticking.Ticked)
    return made


class Beside:
    def __init__(self, parts: Recorder) -> None:
        self.stopping, self.stop, self.end = parts.stopping, parts.stop, parts.end

    def mend(self) -> bool:
        return True


@pytest.mark.parametrize(("busy", "told"), [([], ""), ([7], "1 that is"), ([7, 8], "2 that are")])
def test_the_site_answers_until_what_is_under_way_has_ended(parts, monkeypatch, busy, told):
    monkeypatch.setattr(worker.working, "busy_pids", lambda: busy)
    said: list[str] = []

    assert worker.Worker(said.append, beside=Beside(parts)).live() == 0

    assert parts.calls == ["site told of it", "drained", "site asked to end", "site ended"]
    assert parts.hurried == [False, True]
    stopping = [line for line in said if line.startswith("stopping")]
    assert len(stopping) == bool(told)
    assert told in "".join(stopping)
    assert not told or "a second signal does not wait" in stopping[0]
