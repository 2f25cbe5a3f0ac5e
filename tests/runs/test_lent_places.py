"""What a run may be lent, and what the certificate says of sockets in it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from runs import mounts, paths, seal, workspace
from runs.refusal import Refusal


@pytest.fixture
def runtime(tmp_path, monkeypatch) -> Path:
    place = tmp_path / "rt" / "sanduk"
    place.mkdir(parents=True)
    monkeypatch.setattr(paths, "runtime_place", lambda: place)
    return place


@pytest.mark.parametrize("which", ["itself", "above", "below"])
def test_the_sockets_and_tokens_of_other_runs_cannot_be_lent(runtime, tmp_path, which):
    (runtime / "0123").mkdir()
    lent = {"itself": runtime, "above": runtime.parent, "below": runtime / "0123"}[which]
    with pytest.raises(Refusal, match="runtime directory"):
        mounts.parse(f"{lent}:/data", home="/home/agent", state=tmp_path / "state")
    with pytest.raises(Refusal, match="runtime directory"):
        workspace.check(str(lent), state=tmp_path / "state")


@pytest.mark.parametrize("path", ["/etc", "/usr/share", "/proc", "/dev/shm", "/home", "~"])
def test_a_place_of_the_systems_is_refused_without_a_command_that_would_break_it(path, tmp_path):
    with pytest.raises(Refusal) as refused:
        workspace.check(path, state=tmp_path / "state")
    assert "chown" not in str(refused.value)
    assert "--workdir ./work" in str(refused.value)


def test_a_socket_in_a_lent_directory_stands_in_the_first_sentence(tmp_path):
    (tmp_path / "sub").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "sub" / "s"))
    found, all_seen = seal.lent_sockets([str(tmp_path)])
    assert found == [str(tmp_path / "sub" / "s")]
    assert all_seen
    bare = seal.Certificate(mode="sealed", checks=())
    assert bare.headline == "sealed: nothing answers but the relay"
    told = seal.with_sockets(bare, found, all_seen=all_seen)
    assert told.headline.startswith("sealed, but for a socket in a directory you lent it")


def test_directories_too_large_to_search_are_no_proof(tmp_path, monkeypatch):
    monkeypatch.setattr(seal, "ENTRIES_LOOKED_AT", 2)
    for number in range(5):
        (tmp_path / str(number)).touch()
    found, all_seen = seal.lent_sockets([str(tmp_path)])
    assert (found, all_seen) == ([], False)
    told = seal.with_sockets(seal.Certificate(mode="sealed", checks=()), found, all_seen=all_seen)
    assert told.checks[-1].verdict == "unknown"
    assert "1 of 1 checks could not be made" in told.headline
