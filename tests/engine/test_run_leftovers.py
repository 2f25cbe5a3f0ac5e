"""What a run leaves whose container the engine cannot start, or whose process is killed early."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from tests.engine.running import DONE, Installation, eventually

pytestmark = pytest.mark.engine
TOO_MANY_FILES = """case "$*" in
create*sanduk.role=agent*) shift; exec $REAL create --ulimit nofile=2147483584:2147483584 "$@";;
esac
exec $REAL "$@"
"""
HANGS_AT_THE_PROBE = """[ "$1" = cp ] && { touch "$TMPDIR/../probing"; exec sleep 60; }
exec $REAL "$@"
"""
BROKEN = """FROM debian:trixie-slim
RUN echo a hint for a person >&2; false
"""


def probes(made: Installation) -> list[str]:
    mark = f"label=sanduk.install={(made.home / 'install-id').read_text()}"
    found = made.engine_says("image", "ls", "-q", "--filter", mark, "--filter", "dangling=true")
    directories = [str(each) for each in Path("/run/sanduk").glob("probe-*")]
    mine = [each for each in directories if mark.rpartition("=")[2] in each]
    return [*made.containers(probes=True), *found.split(), *mine]


def test_what_a_killed_probe_left_is_removed_by_the_next_stop(
    docker: Installation, needs_root: None
):
    shutil.rmtree(docker.home / "engines")  # nothing was asked before
    shadow = docker.shadow("docker", HANGS_AT_THE_PROBE)
    going = docker.start(*docker.words(DONE), **shadow)
    eventually((docker.ground / "probing").exists)
    going.signal(signal.SIGKILL).end()
    assert len(probes(docker)) == 3  # a container, an image, a directory

    done = docker.sanduk("stop", "--runtime", "docker")

    assert done.code == 0
    assert "removed 1 container, 1 image" in done.err
    assert probes(docker) == []


def test_a_container_that_the_engine_could_not_start_is_no_failure_of_the_agent(
    docker: Installation,
):
    done = docker.run(DONE, **docker.shadow("docker", TOO_MANY_FILES))

    assert done.code == 2
    assert docker.row["outcome"] == "refused"
    assert "the container did not start: " in done.line
    assert len(done.line) < 260
    docker.nothing_left()


def test_a_build_that_fails_shows_its_last_lines_and_a_short_reason(docker: Installation):
    file = docker.ground / "Containerfile"
    file.write_text(BROKEN)
    done = docker.run(DONE, "--containerfile", str(file), DOCKER_BUILDKIT="0")

    *lines, last = done.err.splitlines()
    assert done.code == 2
    assert last.startswith("sanduk: refused: building ")
    assert last.endswith("returned a non-zero code: 1")
    assert "sanduk:   a hint for a person" in lines
    assert "DEPRECATED" not in done.err
    docker.nothing_left()


def test_too_small_a_part_of_a_processor_is_refused_before_anything_starts(docker: Installation):
    done = docker.run(DONE, "--cpus", "0.001")

    assert done.code == 2
    assert "--cpus: it takes a number from 0.01 to 1024, not '0.001'" in done.line
    assert not (docker.home / "sanduk.sqlite3").exists() or not docker.rows()


def test_more_processors_than_there_are_is_told_and_works(docker: Installation):
    told_first = docker.sanduk(*docker.words(DONE, "--cpus", "1000", "--dry-run"))
    done = docker.run(DONE, "--cpus", "1000")

    assert "1000 cpus (this host has " in told_first.out
    assert done.code == 0
