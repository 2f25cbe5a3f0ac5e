"""The raw output on disk: private, capped with a mark, and no reason to end a run."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from runs import stream
from runs.stream import CUT, OutputLog


def test_the_log_is_private(tmp_path: Path):
    """C-15: state was world-readable."""
    log = OutputLog(tmp_path / "output.log")
    log.write(b"hello\n")
    log.close()

    assert (tmp_path / "output.log").read_bytes() == b"hello\n"
    assert (tmp_path / "output.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("pieces", [[b"x" * 10], [b"x" * 11], [b"x" * 9, b"xy" * 50, b"more"]])
def test_the_log_ends_at_its_cap_with_a_mark(tmp_path: Path, pieces):
    log = OutputLog(tmp_path / "output.log", limit=10)
    for piece in pieces:
        log.write(piece)
    log.close()

    assert (tmp_path / "output.log").read_bytes() == b"x" * 10 + CUT


def test_the_log_is_never_written_through_a_link(tmp_path: Path):
    (tmp_path / "output.log").symlink_to(tmp_path / "target")

    with pytest.raises(OSError, match="symbolic link"):
        OutputLog(tmp_path / "output.log")
    assert not (tmp_path / "target").exists()


def test_a_full_disk_stops_the_log_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = OutputLog(tmp_path / "output.log")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(stream.os, "write", full)
    log.write(b"one")
    monkeypatch.undo()
    log.write(b"two")
    log.close()

    assert log.failure == "No space left on device"
    assert (tmp_path / "output.log").read_bytes() == b""
