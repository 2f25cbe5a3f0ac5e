"""A probe is made by one process at a time, and what it makes can be recognised."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from runs import box, installation, locality
from runs.engines.base import EngineError
from runs.locality import require_usable
from tests.runs.fake_engine import FakeEngine

pytestmark = pytest.mark.anyio


class Probed(FakeEngine):
    """Notes what is there while it is probed."""

    cli = "sh"  # on every PATH

    def __init__(self) -> None:
        super().__init__()
        self.probing, self.most = 0, 0
        self.labels: Mapping[str, str] = {}
        self.directory: Path | None = None

    async def require_local(self, *, directory=None, labels=None) -> None:
        self._asked("require_local")
        self.directory, self.labels = directory, dict(labels or {})
        assert directory.stat().st_mode & 0o777 == 0o700
        self.probing += 1
        self.most = max(self.most, self.probing)
        await asyncio.sleep(0.1)
        self.probing -= 1


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runtime").mkdir()
    monkeypatch.setattr(box, "runtime_directory", lambda: tmp_path / "runtime")
    installation.prepare_home()


async def test_a_probe_works_in_a_directory_that_names_its_installation_and_leaves_none():
    engine = Probed()

    await require_usable(engine, relayed=True)

    assert engine.directory == locality.probe_directory()
    assert installation.install_id() in engine.directory.name
    assert engine.labels == {"sanduk.install": installation.install_id()}
    assert not engine.directory.exists()


async def test_a_directory_that_a_killed_probe_left_does_not_hinder_the_next():
    (locality.probe_directory() / "probe-old").mkdir(parents=True, mode=0o700)
    locality.probe_directory().chmod(0o700)

    await require_usable(Probed(), relayed=True)

    assert not locality.probe_directory().exists()


async def test_two_runs_at_once_probe_one_after_the_other():
    engine = Probed()

    await asyncio.gather(*(require_usable(engine, relayed=True) for _ in range(2)))

    assert engine.most == 1


async def test_a_negative_answer_is_asked_again():
    engine = Probed()
    engine.failing.add("require_local")
    for _ in range(2):
        with pytest.raises(EngineError, match="does not answer"):
            await require_usable(engine, relayed=True)
    engine.failing.clear()

    await require_usable(engine, relayed=True)
    await require_usable(engine, relayed=True)

    assert engine.calls.count("require_local") == 3
