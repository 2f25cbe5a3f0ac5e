"""What one live run writes in, no other one may write in, whatever flag it was lent by."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs import overlap
from runs.engines.base import Mount
from runs.models import Run
from runs.mounts import absolute
from runs.refusal import Refusal
from tests.factories import make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def live(tmp_path: Path) -> Run:
    """A run that works in `theirs` and was lent `cache` to write in, `books` to read."""
    for name in ("theirs", "cache", "books"):
        (tmp_path / name).mkdir()
    lent = [f"{tmp_path}/cache:/data/cache:rw", f"{tmp_path}/books:/data/books:ro"]
    return make_run(state="running", workspace=str(tmp_path / "theirs"), order={"mounts": lent})


@pytest.mark.parametrize("lent", ["theirs", "theirs/sub", "."])
def test_a_live_runs_workdir_is_not_lent_to_write_in(live: Run, tmp_path: Path, lent: str):
    source = str((tmp_path / lent).resolve())

    with pytest.raises(Refusal, match=rf"--mount {source}: run {live.uid} works in .* read-only"):
        overlap.refuse_overlap(str(tmp_path / "mine"), [source])


@pytest.mark.parametrize("workdir", ["cache", "cache/sub"])
def test_nobody_works_where_a_live_run_may_write(live: Run, tmp_path: Path, workdir: str):
    with pytest.raises(Refusal, match=f"run {live.uid} was lent .* to write in"):
        overlap.refuse_overlap(str(tmp_path / workdir), [])


def test_what_is_read_only_or_over_is_free(live: Run, tmp_path: Path):
    make_run(state="ended", workspace=str(tmp_path / "mine"))

    overlap.refuse_overlap(str(tmp_path / "mine"), [])
    overlap.refuse_overlap(str(tmp_path / "books"), [])
    overlap.refuse_overlap(str(tmp_path / "mine"), [str(tmp_path / "cache")])


def test_reading_where_a_live_run_works_is_remarked_on(live: Run, tmp_path: Path):
    mine = make_run(state="starting", workspace=str(tmp_path / "mine"))
    theirs = str(tmp_path / "theirs")

    assert list(overlap.notes(mine, [Mount(theirs, "/data/x", read_only=True)])) == [
        f"{theirs} may change meanwhile: run {live.uid} works there"
    ]
    assert list(overlap.notes(mine, [Mount(str(tmp_path / "books"), "/data/b")])) == []
    assert list(overlap.notes(live, [Mount(theirs, "/data/x")])) == []


def test_no_copy_is_written_where_a_live_run_works(live: Run, tmp_path: Path):
    with pytest.raises(Refusal, match=f"--report r: run {live.uid} works in"):
        overlap.refuse_output("--report r", tmp_path / "theirs" / "REPORT.md")
    overlap.refuse_output("--report r", tmp_path / "REPORT.md")


def test_an_orders_mount_means_the_same_in_another_directory(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert absolute("here:/data:rw") == f"{tmp_path}/here:/data:rw"
    assert absolute(f"{tmp_path}/a:b:/data") == f"{tmp_path}/a:b:/data"
    with pytest.raises(Refusal, match="write it as HOST:DEST"):
        absolute("nonsense")
