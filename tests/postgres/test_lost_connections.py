"""A server that is started again in the middle costs a run, a wakeup and a worker nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import fresh_database, postgres
from tests.postgres.outliving import EVENTS
from tests.processes import Processes, environment

__all__ = ["postgres"]


@pytest.fixture
def processes(postgres: str, tmp_path: Path) -> Iterator[Processes]:
    with (
        fresh_database(postgres) as url,
        Processes(2, "tests.postgres.outliving", environment(tmp_path / "state", url)) as started,
    ):
        started.one("begin")
        yield started


def test_a_run_keeps_its_lease_its_trace_and_its_outcome(processes: Processes) -> None:
    found, other = processes.each("both")

    assert other["ended"] >= 2  # the writer's and the lease's
    assert found["lost"] == []
    assert found["texts"] == [f"line {number}" for number in range(EVENTS)]
    assert found["outcome"] == "succeeded"
    assert found["beats"] > 5


def test_a_wakeup_is_ended_as_its_run_did(processes: Processes, tmp_path: Path) -> None:
    assert processes.one("wake", str(tmp_path)) == ["ended", "succeeded", "", "done"]


def test_what_looks_again_and_again_finds_the_server_again(processes: Processes) -> None:
    assert processes.one("look_again") == [False, None]
