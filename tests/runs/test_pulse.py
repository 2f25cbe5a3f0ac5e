"""Stamps: when a part was last at work, and whether the clock was set back since."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs import pulse


@pytest.fixture
def steer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "clock"
    monkeypatch.setenv("SANDUK_CLOCK_FILE", str(file))
    file.write_text("0")
    return file


def test_a_stamp_ages_and_a_clock_set_back_shows(steer: Path):
    assert pulse.age_s("tick") is None
    assert not pulse.is_behind("tick")
    pulse.stamp("tick")
    steer.write_text("200")
    age = pulse.age_s("tick")
    assert age is not None
    assert 200 <= age < 230
    steer.write_text("-30")
    assert not pulse.is_behind("tick")
    steer.write_text("-3600")
    assert pulse.is_behind("tick")
    assert pulse.age_s("tick") == 0


def test_what_is_no_stamp_counts_as_none(state: Path):
    (state / "pulse").mkdir(parents=True)
    (state / "pulse" / "tick").write_text("yesterday")

    assert pulse.seen_at("tick") is None


def test_a_disk_that_takes_no_stamp_stops_nothing(state: Path):
    state.mkdir()
    (state / "pulse").write_text("a file where a directory should be")

    pulse.stamp("tick")
