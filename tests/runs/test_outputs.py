"""`-o` and `--stats-file`: a hostile agent may own the place where the copy goes."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from runs.outputs import Output
from runs.refusal import Refusal


def test_the_copy_is_private_and_replaces_what_was_there(tmp_path: Path):
    (tmp_path / "copy.md").write_text("a much longer text than the new one")
    (tmp_path / "copy.md").chmod(0o644)

    Output("-o", str(tmp_path / "copy.md")).write(b"new\n")

    assert (tmp_path / "copy.md").read_bytes() == b"new\n"
    assert stat.S_IMODE((tmp_path / "copy.md").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["copy.md"]


def test_a_directory_that_becomes_a_link_leads_nowhere_else(tmp_path: Path):
    """The agent moves the directory away and puts a link to a precious one in its place."""
    place, precious = tmp_path / "d", tmp_path / "etc"
    place.mkdir()
    precious.mkdir()
    output = Output("-o", str(place / "copy.md"))
    place.rename(tmp_path / "d2")
    place.symlink_to(precious)

    output.write(b"the agent's words")

    assert list(precious.iterdir()) == []
    assert (tmp_path / "d2" / "copy.md").read_bytes() == b"the agent's words"


def make(kind: str, path: Path) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(path.with_name("precious"))
    elif kind == "directory":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))


@pytest.mark.parametrize("kind", ["pipe", "link", "directory", "socket"])
def test_what_is_no_regular_file_is_refused_before_the_run(tmp_path: Path, kind):
    make(kind, tmp_path / "o")
    with pytest.raises(Refusal, match="no regular file"):
        Output("-o", str(tmp_path / "o"))


@pytest.mark.parametrize("kind", ["pipe", "link", "directory", "socket"])
def test_what_was_put_there_during_the_run_is_not_written_to_and_nobody_waits(tmp_path, kind):
    output = Output("-o", str(tmp_path / "o"))
    make(kind, tmp_path / "o")
    with pytest.raises(OSError, match="no regular file"):
        output.write(b"text")
    assert not (tmp_path / "precious").exists()


def test_a_device_is_refused():
    with pytest.raises(Refusal, match="no regular file"):
        Output("-o", "/dev/full")


def test_a_directory_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(Refusal, match="nowhere"):
        Output("--stats-file", str(tmp_path / "nowhere" / "f"))


def test_a_write_that_fails_leaves_the_old_file_and_no_draft(tmp_path: Path, monkeypatch):
    (tmp_path / "o").write_text("old")
    output = Output("-o", str(tmp_path / "o"))

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("runs.outputs.os.rename", full)
    with pytest.raises(OSError, match="No space"):
        output.write(b"new")
    assert (tmp_path / "o").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1
