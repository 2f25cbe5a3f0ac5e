"""An assistant with a directory of its own, whose memory is kept in a state directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assistants.config import Config
from assistants.memory import after_wakeup, before_wakeup
from assistants.models import Assistant, MemorySnapshot, Wakeup
from tests.factories import make_assistant, make_wakeup


@pytest.fixture(autouse=True)
def state(tmp_path: Path, settings) -> Path:
    settings.SANDUK_HOME = tmp_path / "state"
    return settings.SANDUK_HOME


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Assistant]:
    def made(name: str = "scout", **settings: Any) -> Assistant:
        (tmp_path / name / "workspace").mkdir(parents=True)
        config = Config(**{"memory_review": False, **settings})
        return make_assistant(name, config=config, directory=str(tmp_path / name))

    return made


@pytest.fixture
def scout(make) -> Assistant:
    """One whose memory nobody reviews."""
    return make()


@pytest.fixture
def held(make) -> Assistant:
    """One whose memory waits for a person."""
    return make("held", memory_review=True)


def workspace(assistant: Assistant) -> Path:
    return Path(assistant.directory) / "workspace"


def names(place: Path) -> list[str]:
    return sorted(each.name for each in place.iterdir())


def wake(assistant: Assistant, write: Callable[[Path], object] | None = None) -> MemorySnapshot:
    """A whole wakeup, in which an agent does `write` to the workspace; the snapshot after it."""
    wakeup = make_wakeup(assistant, state="running")
    before_wakeup(assistant, wakeup)
    if write is not None:
        write(workspace(assistant))
    taken = after_wakeup(assistant, wakeup)
    Wakeup.objects.end(wakeup.pk, "nobody", "succeeded")
    return taken


def writing(name: str, text: str) -> Callable[[Path], object]:
    return lambda place: (place / name).write_text(text)
