"""The bench of snapshots works at all, and stops when a snapshot is not what it should be."""

from __future__ import annotations

import pytest

from assistants.memory import capture
from assistants.memory.manifest import Manifest
from tests.bench.memory_cost import BEGIN, READ, SNAPSHOT, measure_memory_cost
from tests.bench.report import Report
from tests.bench.setting import Effort, Setting


def test_a_snapshot_is_measured_beside_reading_the_same_files(tmp_path):
    setting = Setting(Report(), tmp_path, Effort(rounds=1))
    measure_memory_cost(setting, 300)
    [section] = setting.report.sections

    assert section["figures"][BEGIN].keys() == {READ, SNAPSHOT}
    assert all(section["figures"][BEGIN].values())
    [target] = section["targets"]
    assert target["at_most"] == 2.0


def test_a_snapshot_that_misses_files_is_no_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(capture.Manifest, "of", lambda _: Manifest())

    with pytest.raises(AssertionError, match="does not hold the workspace"):
        measure_memory_cost(Setting(Report(), tmp_path, Effort(rounds=1)), 10)
