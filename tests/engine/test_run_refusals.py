"""What is refused before an agent starts: one line, exit code 2, nothing left."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.engine_fixtures import told
from tests.engine.running import DONE, SANDUK, WAIT, Done, Installation
from tests.pace import stretched

pytestmark = pytest.mark.engine
KEY = "sk-canary-7f3d5b2a9c4e1f60"
CAN_READ = "+dac_read_search"  # the interpreter may lie where only root looks


def refused(made: Installation, done: Done, *words: str) -> None:
    assert done.code == 2, done
    assert all(word in done.line for word in words), done.line
    assert done.line.startswith("sanduk: ")
    assert "Traceback" not in done.err
    if (made.home / "sanduk.sqlite3").exists() and made.rows():
        assert made.row["outcome"] == "refused"
        assert made.row["state"] == "ended"


# -- the engine -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [("--mode", "sealed"), ("--no-network",)], ids=["sealed", "none"])
def test_no_engine_is_installed(docker: Installation, mode: tuple[str, ...]):
    shutil.rmtree(docker.home / "engines")  # nothing was asked before
    docker.ground.joinpath("bin").mkdir()
    words = [w for w in docker.words(DONE, "-q", *mode) if w not in ("--runtime", "docker")]
    done = docker.sanduk(*words, PATH=str(docker.ground / "bin"))

    refused(docker, done, "docker.io", "podman", "PATH", "scripts/engine-up")
    docker.nothing_left()


def with_its_database(made: Installation) -> None:
    """Once made: what comes next is as quick as every command but an installation's first."""
    assert made.sanduk("runs").code == 0


@pytest.mark.parametrize("mode", [("--mode", "sealed"), ("--no-network",)], ids=["sealed", "none"])
def test_the_daemon_does_not_run(docker: Installation, mode: tuple[str, ...]):
    with_its_database(docker)
    done = docker.run(DONE, *mode, DOCKER_HOST="unix:///nonexistent/docker.sock")

    refused(docker, done, "DOCKER_HOST", "does not answer", "`unset DOCKER_HOST`")
    assert done.took_s < stretched(5)
    docker.nothing_left()


@pytest.mark.parametrize("mode", [("--mode", "sealed"), ("--no-network",)], ids=["sealed", "none"])
@pytest.mark.parametrize(
    ("variable", "value"), [("DOCKER_HOST", "garbage"), ("DOCKER_CONTEXT", "not-there")]
)
def test_an_address_of_the_engine_that_is_none_names_its_variable(
    docker: Installation, mode: tuple[str, ...], variable: str, value: str
):
    done = docker.run(DONE, *mode, **{variable: value})

    refused(docker, done, f"{variable}='{value}'", f"`unset {variable}`")
    swept = docker.sanduk("stop", "--runtime", "docker", **{variable: value})
    assert swept.code == 2
    assert f"`unset {variable}`" in swept.line


def test_the_engines_socket_is_not_permitted(docker: Installation, needs_root: None):
    """A normal user who is not in the engine's group is told how to get there."""
    user = 4242
    socket = Path("/var/run/docker.sock")
    if not socket.exists() or socket.stat().st_mode & 0o006:
        pytest.skip("there is no Docker socket of this machine that is closed to a stranger")
    shutil.rmtree(docker.home)
    for folder in (docker.ground, docker.ground / "tmp", docker.ground / "user"):
        os.chown(folder, user, user)
    docker.as_user = (
        "setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups",
        "--inh-caps", CAN_READ, "--ambient-caps", CAN_READ,
    )  # fmt: skip
    done = docker.run(DONE)

    refused(docker, done, "you may not use Docker's socket", "usermod -aG docker")


@pytest.mark.parametrize("host", ["tcp://127.0.0.1:1", "ssh://nobody@127.0.0.1:1"])
def test_a_remote_daemon_is_refused_at_once(docker: Installation, host: str):
    with_its_database(docker)
    done = docker.run(DONE, DOCKER_HOST=host)

    refused(docker, done, "remote", "--mode open")
    assert done.took_s < stretched(2.5)  # two seconds from the start of the interpreter
    docker.nothing_left()


def test_a_remote_daemon_that_never_answers_is_refused_at_once(docker: Installation):
    environment = docker.shadow("docker", '[ "$1" = info ] && sleep 20; exec $REAL "$@"')
    with_its_database(docker)
    done = docker.run(DONE, DOCKER_HOST="tcp://127.0.0.1:1", **environment)

    refused(docker, done, "remote")
    assert done.took_s < stretched(2.5)
    docker.nothing_left()


def test_an_unknown_engine(docker: Installation):
    done = docker.sanduk("run", "-q", "--runtime", "dokcer", "--agent", "pi", "task")

    refused(docker, done, "dokcer", "podman")


# -- images ---------------------------------------------------------------------------------------


def test_a_build_that_fails_shows_its_last_lines(docker: Installation):
    recipe = docker.ground / "broken.json"
    command = "echo step one; echo the disk is made of cheese; exit 7"
    recipe.write_text(
        json.dumps(
            {
                "name": "broken",
                "agent": "scripted",
                "from": "docker.io/library/debian:trixie-slim",
                "user": "agent",
                "home": "/home/agent",
                "sections": [{"name": "fails", "type": "run", "lines": [command]}],
                "entrypoint": ["sh"],
            }
        )
    )
    done = docker.sanduk(
        "run", "-q", "--recipe", str(recipe), "--provider", "rehearsal",
        "--workdir", str(docker.work), DONE,
    )  # fmt: skip

    assert done.code == 2, done
    assert "the disk is made of cheese" in done.err
    assert docker.row["outcome"] == "refused"
    assert docker.row["agent_exit_code"] is None
    docker.nothing_left()


def test_an_image_of_ones_own_that_is_not_there(docker: Installation):
    done = docker.run(DONE, "--image", "no-such-image:none")

    refused(docker, done, "no-such-image:none")
    docker.nothing_left()


def test_an_image_without_an_entrypoint(docker: Installation):
    done = docker.run(DONE, "--image", "debian:trixie-slim")

    refused(docker, done, "entrypoint")
    docker.nothing_left()


# -- keys -----------------------------------------------------------------------------------------


def test_no_key(docker: Installation):
    done = docker.run(DONE, "--provider", "openai")

    refused(docker, done, "export OPENAI_API_KEY", "rehearsal")
    docker.nothing_left()


@pytest.mark.parametrize("middle", ["\n", "\r", " ", "\t", "\x1b[31m", "é"])
def test_a_key_with_a_line_break_is_never_printed(docker: Installation, middle: str):
    """C-5: neither half of it."""
    done = docker.run(DONE, "--provider", "openai", OPENAI_API_KEY=f"{KEY}{middle}secondhalf")

    refused(docker, done, "OPENAI_API_KEY")
    assert KEY[-8:] not in done.out + done.err
    assert "secondhalf" not in done.out + done.err
    for file in docker.home.rglob("*"):
        if file.is_file():
            assert b"secondhalf" not in file.read_bytes()
    docker.nothing_left()


def test_the_line_end_of_a_key_file_is_no_part_of_the_key(docker: Installation):
    (docker.ground / "key").write_text(f"{KEY}\n")
    done = docker.run(DONE, "--provider", "openai", OPENAI_API_KEY_FILE=str(docker.ground / "key"))

    assert (done.code, done.err) == (0, "")


# -- orders ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["", "   ", "\n\n"])
def test_an_empty_task(docker: Installation, task: str):
    done = docker.run(task)

    refused(docker, done, "the task is empty")
    assert not docker.work.exists()


def test_an_empty_task_on_standard_input(docker: Installation):
    done = docker.sanduk(
        "run", "-q", "--agent", "pi", "--provider", "rehearsal", "--task-file", "-"
    )

    refused(docker, done, "the task is empty")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--agent", "nobody"), ("nobody", "pi")),
        (("--agent", "claude", "--provider", "openai"), ("claude", "openai")),
        (("--agent", "pi", "--provider", "nobody"), ("nobody", "rehearsal")),
        (("--agent", "codex", "--provider", "rehearsal", "--max-turns", "3"), ("--max-turns",)),
    ],
)
def test_what_does_not_fit_together(
    docker: Installation, flags: tuple[str, ...], words: tuple[str, ...]
):
    done = docker.sanduk("run", "-q", "--workdir", str(docker.work), *flags, "task")

    refused(docker, done, *words)
    assert not docker.work.exists()


# -- room -----------------------------------------------------------------------------------------


@pytest.fixture
def small_home(docker: Installation, needs_root: None) -> Iterator[Installation]:
    """A state directory on a file system of 4 MB."""
    mounted = told("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(docker.home))
    if mounted.returncode != 0:
        pytest.skip(f"a tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield docker
    finally:
        subprocess.run(["umount", "--lazy", str(docker.home)], check=True)


def test_a_state_directory_that_is_all_but_full(small_home: Installation):
    done = small_home.run(DONE, SANDUK_MIN_FREE_MB="64")

    refused(small_home, done, "MB are free", "SANDUK_MIN_FREE_MB")
    small_home.nothing_left()


def test_a_disk_that_fills_up_in_mid_run_leaves_no_container(small_home: Installation):
    """The end cannot be written down; the next command with room ends the run."""
    going = small_home.begin(WAIT, SANDUK_MIN_FREE_MB="0")
    filler = small_home.home / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    time.sleep(3)
    done = going.signal(2).end()

    assert done.code not in (0, 2), done
    assert small_home.containers() == []
    assert "Traceback" not in done.err
    assert "disk" in done.err or "full" in done.err
    filler.unlink()
    assert small_home.sanduk("runs").code == 0
    assert small_home.row["state"] == "ended"
    assert small_home.row["outcome"] in ("cancelled", "interrupted")
    small_home.nothing_left()


def test_a_state_directory_that_cannot_be_written(docker: Installation):
    done = docker.sanduk("run", "-q", "--agent", "pi", "task", SANDUK_HOME="/proc/sanduk")

    refused(docker, done, "/proc/sanduk")


# -- two at once ----------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["here", "here/inside", "."])
def test_a_second_run_in_the_same_place_is_refused_by_the_first_ones_name(
    docker: Installation, needs_root: None, place: str
):
    """L-9: in one directory, inside it, or around it."""
    (docker.work / "here/inside").mkdir(parents=True)
    for folder in (docker.work, docker.work / "here", docker.work / "here/inside"):
        os.chown(folder, 1000, 1000)

    going = docker.begin(WAIT, "--workdir", str(docker.work / "here"))
    first = docker.row["uid"]
    done = docker.run(DONE, "--workdir", str((docker.work / place).resolve()))
    still = going.process.poll() is None
    ended = going.signal(2).end()
    refused_rows = [row for row in docker.rows() if row["uid"] != first]
    docker.nothing_left()

    assert done.code == 2
    assert first in done.line
    assert f"sanduk stop {first}" in done.line
    assert still
    assert ended.code == 130
    assert refused_rows == []


def test_two_runs_in_two_places_go_side_by_side(docker: Installation):
    one = docker.begin(WAIT)
    two = docker.run(DONE, "--workdir", str(docker.ground / "other"))

    assert two.code == 0
    assert one.process.poll() is None
    assert one.signal(2).end().code == 130
    docker.nothing_left()


def test_the_command_is_the_installed_one():
    assert SANDUK.is_file()
