"""Results are not put among our own files: they would end with the run, or be taken for ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs import paths, rules
from runs.order import Order
from runs.outputs import Output
from runs.refusal import Refusal


@pytest.fixture
def places(tmp_path, settings, monkeypatch) -> dict[str, Path]:
    """Our own directories, and a link to one of them."""
    runtime = tmp_path / "rt" / "sanduk"
    settings.SANDUK_HOME = tmp_path / "state"
    (settings.SANDUK_HOME / "runs").mkdir(parents=True)
    (runtime / "0123").mkdir(parents=True)
    (tmp_path / "link").symlink_to(runtime)
    monkeypatch.setattr(paths, "runtime_place", lambda: runtime)
    return {
        "state": settings.SANDUK_HOME,
        "runs": settings.SANDUK_HOME / "runs",
        "runtime": runtime,
        "a run's own": runtime / "0123",
        "a link": tmp_path / "link",
    }


@pytest.mark.parametrize("which", ["state", "runs", "runtime", "a run's own", "a link"])
def test_no_body_log_and_no_copy_goes_among_our_own_files(places, which):
    place = places[which]
    order = Order(task="x", log_bodies=True, log_dir=str(place))

    with pytest.raises(Refusal, match=r"^--log-dir .* lies in sanduk's own (state|runtime) "):
        rules.check_log_directory(order, [])
    for flag in ("--report", "--stats-file"):
        with pytest.raises(Refusal, match=f"^{flag} .* lies in sanduk's own (state|runtime) "):
            Output(flag, str(place / "sanduk.sqlite3"))


def test_beside_our_own_files_is_free(places, tmp_path: Path):
    rules.check_log_directory(Order(task="x", log_bodies=True, log_dir=str(tmp_path)), [])
    Output("--report", str(tmp_path / "report.md"))
