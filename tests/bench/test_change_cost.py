"""The bench of changes works at all, and stops when what was read is not what was written."""

from __future__ import annotations

import pytest

from changes import gathered
from tests.bench.change_cost import IN, LANDED, OUT, measure_changes
from tests.bench.report import Report
from tests.bench.setting import Effort, Setting


def test_a_change_is_measured_in_out_and_landed(tmp_path):
    setting = Setting(Report(), tmp_path, Effort(rounds=1))
    measure_changes(setting, 30, 30, 30)
    [section] = setting.report.sections

    assert section["figures"].keys() == {IN, OUT, LANDED}
    assert [target["at_most"] for target in section["targets"]] == [10.0, 2.0]


def test_a_result_that_differs_is_no_figure(tmp_path, monkeypatch):
    real, calls = gathered.tree_with, []

    def other(*words, **options):
        calls.append(1)
        return words[1] if len(calls) > 2 else real(*words, **options)

    monkeypatch.setattr(gathered, "tree_with", other)
    with pytest.raises(AssertionError, match="another tree"):
        measure_changes(Setting(Report(), tmp_path, Effort(rounds=1)), 5, 5, 5)
