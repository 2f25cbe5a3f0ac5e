"""A run's private directory: short, closed, and safe to source."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runs import box, paths
from runs.refusal import Refusal
from tests.accounts import ORDINARY, acting_as, needs_root, open_directory

UID = "0123456789ab"


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "runtime"
    path.mkdir(mode=0o700)
    monkeypatch.setattr(box, "runtime_directory", lambda: path)
    return path


def agent_files(private: box.Box, env: dict[str, str], stdin: str | None = None) -> dict[str, Path]:
    mounts = private.agent_files(
        uid=ORDINARY, gid=ORDINARY, home="/home/agent", env=env, stdin=stdin
    )
    assert all(mount.read_only for mount in mounts)
    return {mount.target: Path(mount.source) for mount in mounts}


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_directory_is_private_and_holds_the_network_files(runtime: Path):
    private = box.make(UID)

    assert mode(private.path) == 0o700
    assert {m.target for m in private.network_files()} == {"/etc/resolv.conf", "/etc/hosts"}
    for mount in private.network_files():
        assert mount.read_only
        assert mode(Path(mount.source)) == 0o644
    servers = [
        line.split()[1]
        for line in (private.path / "resolv.conf").read_text().splitlines()
        if line.startswith("nameserver")
    ]
    assert servers == ["127.0.0.1"]


def test_what_may_hold_a_secret_is_the_agents_alone(runtime: Path):
    files = agent_files(box.make(UID), {"KEY": "sk-secret"}, "the task")

    for name in ("/run/sanduk/env", "/run/sanduk/stdin"):
        if os.geteuid() == 0:
            assert mode(files[name]) == 0o600
            assert files[name].stat().st_uid == ORDINARY
    assert mode(files["/run/sanduk/entry"]) == 0o755
    assert mode(files["/etc/passwd"]) == 0o644
    assert f"agent:x:{ORDINARY}:{ORDINARY}:" in files["/etc/passwd"].read_text()
    assert files["/run/sanduk/stdin"].read_text() == "the task"


HOSTILE = {
    "QUOTE": "it's",
    "COMMAND": "$(touch /tmp/owned) `id` ${HOME}",
    "LINES": "a\nexport EVIL=1\n\n",
    "SPACES": "  a  b  ",
    "BACKSLASH": "\\n \\' \\\\",
    "EMPTY": "",
    "GLOB": "* ? [a] ~ # ! ; & | < >",
    "UNICODE": "ü 漢 🙂",
    "DASH": "-n",
}


def sourced(file: Path) -> dict[str, str]:
    """The variables that a real sh has after sourcing the file."""
    done = subprocess.run(
        ["/bin/sh", "-c", '. "$0" && env -0', str(file)],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        check=True,
        timeout=10,
    )
    pairs = [each.partition(b"=") for each in done.stdout.split(b"\0") if each]
    found = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    return {k: v for k, v in found.items() if k not in ("PATH", "PWD", "_", "OLDPWD", "SHLVL")}


def test_a_value_however_hostile_is_what_sh_exports(runtime: Path):
    files = agent_files(box.make(UID), HOSTILE)

    assert sourced(files["/run/sanduk/env"]) == HOSTILE


def test_a_value_that_is_no_utf8_arrives_as_it_is(runtime: Path):
    value = os.fsdecode(b"caf\xe9")

    assert sourced(agent_files(box.make(UID), {"V": value})["/run/sanduk/env"]) == {"V": value}


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30))
def test_any_text_is_what_sh_exports(runtime: Path, value):
    private = box.make(UID)
    try:
        assert sourced(agent_files(private, {"V": value})["/run/sanduk/env"]) == {"V": value}
    finally:
        private.remove()


def test_a_run_never_takes_over_anothers_directory(runtime: Path):
    box.make(UID)

    with pytest.raises(Refusal, match="cannot be created"):
        box.make(UID)


def test_nothing_is_written_over_or_through_a_file_that_is_there(runtime: Path, tmp_path: Path):
    private = box.make(UID)
    (private.path / "env").symlink_to(tmp_path / "target")

    with pytest.raises(FileExistsError):
        agent_files(private, {})
    assert not (tmp_path / "target").exists()


def test_what_a_dead_run_left_is_removed_and_nothing_else(runtime: Path, tmp_path: Path):
    box.make(UID)
    (tmp_path / "precious").mkdir()
    (runtime / "ffffffffffff").symlink_to(tmp_path / "precious")

    for uid in (UID, UID, "ffffffffffff", "eeeeeeeeeeee"):
        box.remove_left(uid)

    assert not (runtime / UID).exists()
    assert (tmp_path / "precious").is_dir()


# -- where it lies -----------------------------------------------------------------------------


def test_a_socket_fits_however_long_the_state_directory_is(settings, tmp_path: Path):
    settings.SANDUK_HOME = tmp_path / ("h" * 200)

    private = box.make(UID)
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(private.rehearsal_socket))
        assert len(str(private.rehearsal_socket)) < 104
    finally:
        private.remove()


@needs_root
@pytest.mark.parametrize("session", ["usable", "missing", "long", "closed"])
def test_an_accounts_directory_is_its_sessions_or_a_temporary_one(monkeypatch, session):
    with open_directory() as place:
        (place / "tmp").mkdir()
        (place / "tmp").chmod(0o1777)
        monkeypatch.setattr(paths.tempfile, "gettempdir", lambda: str(place / "tmp"))
        path = place / {"long": "x" * 80}.get(session, "session")
        if session != "missing":
            path.mkdir()
            path.chmod(0o700)
            if session != "closed":
                os.chown(path, ORDINARY, ORDINARY)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(path))
        with acting_as():
            found = box.runtime_directory()

        own = path / "sanduk" if session == "usable" else place / "tmp" / f"sanduk-{ORDINARY}"
        assert found == own
        assert mode(found) == 0o700
        assert found.stat().st_uid == ORDINARY


@needs_root
@pytest.mark.parametrize("kind", ["somebody else's", "a link", "a file"])
def test_a_directory_that_somebody_put_there_is_refused(monkeypatch, kind):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    with open_directory() as place:
        monkeypatch.setattr(paths.tempfile, "gettempdir", lambda: str(place))
        path = place / f"sanduk-{ORDINARY}"
        if kind == "a link":
            (place / "target").mkdir()
            os.chown(place / "target", ORDINARY, ORDINARY)
            path.symlink_to(place / "target")
        elif kind == "a file":
            path.touch()
        else:
            path.mkdir(mode=0o777)
        with acting_as(), pytest.raises(Refusal, match=str(path)):
            box.runtime_directory()


@needs_root
def test_a_directory_of_ours_that_stands_open_is_closed(monkeypatch):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    with open_directory() as place:
        monkeypatch.setattr(paths.tempfile, "gettempdir", lambda: str(place))
        with acting_as():
            (place / f"sanduk-{ORDINARY}").mkdir()
            (place / f"sanduk-{ORDINARY}").chmod(0o755)
            assert mode(box.runtime_directory()) == 0o700
