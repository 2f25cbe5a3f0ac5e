"""The workspace: who owns it decides who the agent is, and nothing is chowned silently."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from runs import workspace
from runs.refusal import Refusal
from tests.accounts import ORDINARY, acting_as, needs_root, open_directory

STATE = Path("/nonexistent/sanduk")


@pytest.fixture
def place() -> Iterator[Path]:
    with open_directory() as path:
        yield path


def owned(path: Path, uid: int = ORDINARY, gid: int = ORDINARY, mode: int = 0o755) -> Path:
    path.mkdir()
    if os.geteuid() == 0:
        os.chown(path, uid, gid)
    path.chmod(mode)
    return path


def test_the_agent_is_who_owns_the_directory(place: Path):
    facts = owned(place / "w").stat()

    found = workspace.check(str(place / "w"), state=STATE)

    assert (found.uid, found.gid) == (facts.st_uid, facts.st_gid)
    assert (found.path, found.created, found.note) == (place / "w", False, "")


@pytest.mark.parametrize("below", ["", "sub/dir"])
def test_a_link_to_nothing_makes_nothing_where_it_points(place: Path, below: str):
    (place / "link").symlink_to(place / "target")

    with pytest.raises(Refusal, match=r"is a link to .*target, which is not there"):
        workspace.check(str(place / "link" / below), state=STATE)


@needs_root
def test_a_directory_of_group_root_gives_the_agent_another_group(place: Path):
    owned(place / "w", gid=0)

    found = workspace.check(str(place / "w"), state=STATE)

    assert (found.uid, found.gid) == (ORDINARY, ORDINARY)


@needs_root
def test_what_root_has_us_make_belongs_to_1000_with_the_parents_it_lacked(place: Path):
    found = workspace.check(str(place / "a" / "b"), state=STATE)
    assert (found.uid, found.gid, found.created) == (1000, 1000, True)
    assert not (place / "a").exists(), "checking touches nothing"

    workspace.prepare(found)

    for made in (place / "a", place / "a" / "b"):
        assert (made.stat().st_uid, made.stat().st_gid) == (1000, 1000)
    assert place.stat().st_uid == 0


@needs_root
def test_what_an_account_has_us_make_belongs_to_it(place: Path):
    with acting_as():
        found = workspace.check(str(place / "w"), state=STATE)
        workspace.prepare(found)

    assert (found.uid, found.gid) == (ORDINARY, ORDINARY)
    assert (place / "w").stat().st_uid == ORDINARY
    assert "created" in found.note


@needs_root
def test_a_directory_of_roots_is_refused_with_the_command_that_gives_it_away(place: Path):
    path = owned(place / "it's mine", uid=0, gid=0)

    with pytest.raises(Refusal) as refusal:
        workspace.check(str(path), state=STATE)

    quoted = "'" + str(path).replace("'", "'\"'\"'") + "'"
    assert str(refusal.value).endswith(f": chown -R 1000:1000 {quoted}")
    assert path.stat().st_uid == 0, "nothing is chowned silently"


@needs_root
def test_an_account_is_told_to_use_sudo_for_a_directory_of_roots(place: Path):
    path = owned(place / "w", uid=0, gid=0)

    with acting_as(), pytest.raises(Refusal, match=rf"sudo chown -R {ORDINARY}:{ORDINARY} {path}"):
        workspace.check(str(path), state=STATE)


@needs_root
def test_somebody_elses_directory_is_refused_with_the_command(place: Path):
    path = owned(place / "w", uid=1234)

    with acting_as(), pytest.raises(Refusal, match=rf"sudo chown {ORDINARY} {path}"):
        workspace.check(str(path), state=STATE)


@pytest.mark.parametrize("mode", [0o555, 0o444, 0o655])
def test_a_directory_its_owner_cannot_write_is_refused_with_the_command(place: Path, mode):
    path = owned(place / "w", mode=mode)

    with pytest.raises(Refusal, match=rf"chmod u\+wx {path}"):
        workspace.check(str(path), state=STATE)


def test_a_link_is_resolved_and_said(place: Path):
    owned(place / "w")
    (place / "link").symlink_to(place / "w")

    found = workspace.check(str(place / "link"), state=STATE)

    assert found.path == place / "w"
    assert str(place / "link") in found.note


@pytest.mark.parametrize("name", ["file", "loop", "file/below", "x" * 300, "y" * 5000])
def test_what_can_be_no_directory_is_refused(place: Path, name):
    (place / "file").touch()
    (place / "loop").symlink_to("loop")

    with pytest.raises(Refusal, match="--workdir"):
        workspace.check(str(place / name), state=STATE)


@needs_root
def test_a_directory_behind_a_closed_door_is_refused(place: Path):
    owned(place / "closed", uid=0, gid=0, mode=0o700)
    owned(place / "closed" / "w")

    with acting_as(), pytest.raises(Refusal, match="Permission denied"):
        workspace.check(str(place / "closed" / "w"), state=STATE)


def test_a_home_that_does_not_exist_is_refused():
    with pytest.raises(Refusal, match="no such home"):
        workspace.check("~nobody-of-that-name/w", state=STATE)


@pytest.mark.parametrize("text", ["/", "//", "/tmp/..", "/."])
def test_the_whole_host_is_refused(text):
    with pytest.raises(Refusal, match="whole host"):
        workspace.check(text, state=STATE)


@pytest.mark.parametrize("inside", ["state", "state/runs", "."])
def test_a_workspace_and_the_state_directory_may_not_overlap(place: Path, inside):
    owned(place / "state")
    owned(place / "state" / "runs")

    with pytest.raises(Refusal, match="state directory"):
        workspace.check(str(place / inside), state=place / "state")


def test_a_workspace_with_an_engines_socket_is_refused(place: Path):
    path = owned(place / "w")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path / "docker.sock"))
        with pytest.raises(Refusal, match="engine's socket"):
            workspace.check(str(path), state=STATE)


def test_preparing_what_was_there_changes_nothing(place: Path):
    before = owned(place / "w", mode=0o750).stat()

    workspace.prepare(workspace.check(str(place / "w"), state=STATE))

    after = (place / "w").stat()
    assert (after.st_uid, after.st_mode) == (before.st_uid, before.st_mode)


@needs_root
def test_a_directory_that_cannot_be_made_is_refused(place: Path):
    closed = owned(place / "closed", uid=0, gid=0)
    with acting_as():
        found = workspace.check(str(closed / "w"), state=STATE)
        with pytest.raises(Refusal, match="cannot be created: Permission denied"):
            workspace.prepare(found)


@needs_root
def test_a_link_put_there_meanwhile_is_not_given_away(place: Path):
    found = workspace.check(str(place / "w"), state=STATE)
    target = owned(place / "target", uid=0, gid=0)
    (place / "w").symlink_to(target)

    workspace.prepare(found)

    assert target.stat().st_uid == 0


def test_no_name_is_not_wherever_this_process_is():
    with pytest.raises(Refusal, match="names no directory"):
        workspace.check("", state=STATE)
