"""Trouble with the engine in mid-run: it cannot remove, loses its client, its link, or itself."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.engine.daemon import Asked, door_before
from tests.engine.engine_fixtures import told
from tests.engine.running import (
    DONE,
    READY,
    SCRIPTED,
    WAIT,
    Installation,
    eventually,
    give_images,
    installed,
)
from tests.pace import stretched

pytestmark = pytest.mark.engine
LATER = f"{READY}; sleep 4; {DONE}"


# -- what cannot be removed -----------------------------------------------------------------------


def test_a_removal_that_fails_at_first_is_tried_again(docker: Installation):
    failed: set[str] = set()

    def rule(asked: Asked) -> str | None:
        """The first removal of each container fails on the socket; the client's is the second."""
        if asked.removes and asked.removes not in failed and asked.removes in docker.containers():
            failed.add(asked.removes)
            return "device or resource busy"
        return None

    with door_before(docker) as door:
        door.rule = rule
        done = docker.run(DONE)

    assert len(failed) == 2
    assert (done.code, done.err) == (0, "")
    assert docker.row["state"] == "ended"
    docker.nothing_left()


def test_what_cannot_be_removed_keeps_the_run_from_ending(docker: Installation):
    """L-3: no success is told while a container is left; the next command brings it to its end."""
    with door_before(docker) as door:
        door.rule = lambda asked: (
            "device or resource busy" if asked.removes in docker.containers() else None
        )
        done = docker.run(DONE)
        left = docker.containers()
        row = docker.row
        eventually(lambda: not docker.processes(), 15)  # the undertaker gave up
        blocked = docker.sanduk("runs")
        still = docker.row["state"]
        door.rule = None
        told = docker.sanduk("runs")

    assert done.code != 0
    assert len(done.err.splitlines()) == 1
    assert "device or resource busy" in done.err
    assert "sanduk clean" in done.err
    assert len(left) == 2
    assert (row["state"], row["outcome"]) == ("ending", "succeeded")
    assert still == "ending"
    assert blocked.code == 0
    assert row["uid"] in blocked.err
    assert row["uid"] in told.err
    assert (docker.row["state"], docker.row["outcome"]) == ("ended", "succeeded")
    docker.nothing_left()


def test_an_engine_that_answers_nothing_while_cleaning_up_concludes_nothing(docker: Installation):
    going = docker.begin(WAIT)
    os.kill(docker.undertaker(), signal.SIGKILL)
    going.signal(signal.SIGKILL).process.wait()
    away = docker.sanduk("runs", DOCKER_HOST="unix:///nonexistent/docker.sock")

    assert away.code == 0
    assert "does not answer" in away.err
    assert docker.row["state"] == "running"
    assert docker.sanduk("runs").code == 0
    assert docker.row["outcome"] == "interrupted"
    docker.nothing_left(within_s=3)


# -- client and link ------------------------------------------------------------------------------


def test_a_run_survives_the_death_of_the_engines_client(docker: Installation):
    """The client is only a pipe: another is attached, and the gap is noted."""
    going = docker.begin(LATER)
    (agent,) = docker.containers("agent")
    for line in docker.processes():
        if "start --attach" in line and agent in line:
            os.kill(int(line.partition(":")[0]), signal.SIGKILL)
    done = going.end()

    assert done.code == 0, done
    assert docker.row["outcome"] == "succeeded"
    assert any("output may be missing here" in event for event in docker.events())
    docker.nothing_left()


def test_a_run_whose_link_dies_is_interrupted_within_seconds(installation: Installation):
    going = installation.begin(WAIT)
    (link,) = installation.containers("link")
    installation.engine_says("kill", link)
    done = going.end()

    assert done.code == 143
    assert done.took_s < stretched(6)
    assert "the link to the relay" in done.err
    assert installation.row["outcome"] == "interrupted"
    installation.nothing_left()


def test_a_container_that_somebody_removes_is_an_interruption(docker: Installation):
    going = docker.begin(WAIT)
    docker.engine_says("rm", "--force", *docker.containers("agent"))
    done = going.end()

    assert done.code == 143
    assert "no longer knows the container" in done.err
    docker.nothing_left()


# -- a daemon of the test's own -------------------------------------------------------------------


@dataclass
class Daemon:
    """A second dockerd in a network namespace of its own: in ours it would undo docker0."""

    ground: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def host(self) -> str:
        return f"unix://{self.ground}/d.sock"

    def start(self) -> None:
        with (self.ground / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    "unshare", "--net", "dockerd", "--data-root", str(self.ground / "data"),
                    "--exec-root", str(self.ground / "exec"), "--pidfile",
                    str(self.ground / "pid"), "--host", self.host, "--bridge=none",
                    "--iptables=false", "--ip6tables=false", "--shutdown-timeout", "2",
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        for _ in range(150):
            if self.process.poll() is not None:
                break
            if told("docker", "--host", self.host, "version").returncode == 0:
                return
            time.sleep(0.1)
        self.stop()
        last = (self.ground / "log").read_text().splitlines()[-1:]
        pytest.skip(f"a second dockerd does not start here: {last}")

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)
        self.process = None

    def kill(self) -> None:
        """As a crash does: nothing is cleaned up, and the pid files stay behind."""
        assert self.process is not None
        containerd = self.ground / "exec" / "containerd" / "containerd.pid"
        os.kill(int(containerd.read_text()), signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self.process = None
        containerd.unlink()
        (self.ground / "pid").unlink()


@pytest.fixture(scope="module")
def second(docker_ready: Path) -> Iterator[Daemon]:
    if os.geteuid() != 0:
        pytest.skip("a second dockerd needs root")
    for tool in ("dockerd", "unshare"):
        if shutil.which(tool) is None:
            pytest.skip(f"a second dockerd needs {tool}")
    folder = Path(f"/var/tmp/sk-{os.getpid()}")  # not on a tmpfs: overlayfs has to work there
    folder.mkdir()
    daemon = Daemon(folder)
    try:
        daemon.start()
        wrapper = folder / "docker"
        wrapper.write_text(f'#!/bin/sh\nexec docker --host {daemon.host} "$@"\n')
        wrapper.chmod(0o755)
        give_images(str(wrapper), "link", SCRIPTED)
        yield daemon
    finally:
        daemon.stop()
        _unmount(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _unmount(folder: Path) -> None:
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for place in reversed([place for place in mounts if place.startswith(f"{folder}/")]):
        told("umount", "--lazy", place)


@pytest.fixture
def elsewhere(second: Daemon) -> Iterator[Installation]:
    """An installation on the second daemon, which is started when a test stopped it."""
    if second.process is None:
        second.start()
    with installed("docker") as made:
        made.environment["DOCKER_HOST"] = second.host
        made.cli = str(second.ground / "docker")
        yield made
        if second.process is None:
            second.start()


def test_a_daemon_restarted_in_mid_run_is_an_interruption(second: Daemon, elsewhere: Installation):
    """Its stop ends the agent politely: that is no clean exit."""
    going = elsewhere.begin(f"trap '{DONE}' TERM; {READY}; while :; do sleep 0.1; done")
    second.stop()
    second.start()
    done = going.end()

    assert done.code == 143, done
    assert elsewhere.row["outcome"] == "interrupted"
    assert elsewhere.row["state"] == "ended"
    elsewhere.nothing_left(within_s=3)


def test_a_daemon_stopped_in_mid_run_leaves_the_end_to_a_later_command(
    second: Daemon, elsewhere: Installation
):
    """The minute of patience passes on a steered clock."""
    clock = elsewhere.ground / "clock"
    clock.write_text("0")
    going = elsewhere.begin(WAIT, SANDUK_CLOCK_FILE=str(clock))
    second.stop()
    time.sleep(1.5)
    assert going.process.poll() is None  # a daemon may come back
    clock.write_text("100")
    done = going.end()
    state = elsewhere.row["state"]
    away = elsewhere.sanduk("runs")
    second.start()
    back = elsewhere.sanduk("runs")

    assert done.code == 143, done
    assert "the engine stopped answering" in done.err
    assert "sanduk clean" in done.err
    assert state == "ending"
    assert "does not answer" in away.err
    assert "Traceback" not in done.err + away.err
    assert back.code == 0
    assert (elsewhere.row["state"], elsewhere.row["outcome"]) == ("ended", "interrupted")
    elsewhere.nothing_left(within_s=5)


def test_a_daemon_killed_in_mid_run_is_no_clean_exit(second: Daemon, elsewhere: Installation):
    going = elsewhere.begin(WAIT)
    second.kill()
    second.start()
    done = going.signal(signal.SIGINT).end()

    assert done.code in (130, 143), done
    elsewhere.nothing_left(within_s=5)


def test_a_ctrl_c_is_not_held_up_by_a_daemon_that_is_gone(second: Daemon, elsewhere: Installation):
    going = elsewhere.begin(WAIT)
    second.stop()
    time.sleep(1)
    going.signal(signal.SIGINT)
    time.sleep(0.5)
    done = going.signal(signal.SIGINT).end()
    second.start()
    elsewhere.sanduk("runs")

    assert done.code in (130, 143), done
    assert done.took_s < stretched(15)
    elsewhere.nothing_left(within_s=5)


def test_a_socket_that_nobody_serves_is_a_daemon_that_is_down(docker: Installation):
    path = docker.ground / "dead.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    done = docker.run(DONE, DOCKER_HOST=f"unix://{path}")

    assert done.code == 2
    assert "does not answer" in done.line
    assert "DOCKER_HOST" in done.line
    docker.nothing_left()
