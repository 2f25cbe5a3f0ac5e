"""`sanduk system`: what it says of an engine that is there, down, missing, or not ours to start."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.site.only_scripts import asked

INFO = {"ID": "x", "ServerVersion": "27.0", "OperatingSystem": "Linux", "MemoryLimit": True}


@pytest.fixture
def system(tmp_path: Path):
    """system(words...): `sanduk system` where only the given scripts stand for engines."""

    def look(*words: str, scripts: dict[str, str] | None = None, **env: str):
        given = {"SANDUK_MIN_FREE_MB": "0", **env}
        return asked(tmp_path, "system", *words, scripts=scripts or {}, env=given)

    return look


def docker_that(says: object) -> dict[str, str]:
    return {"docker": f"case $1 in info) cat <<'X'\n{json.dumps(says)}\nX\n;; esac"}


def told(done: CompletedProcess[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_a_working_engine_is_described_and_the_code_is_0(system, tmp_path: Path):
    done = system("status", "--json", scripts=docker_that(INFO))

    found = told(done)
    (docker,) = found["engines"]
    assert (done.returncode, found["works"]) == (0, True)
    assert found["home"] == str(tmp_path / "state")
    assert (docker["version"], docker["answers"], docker["containers"]) == ("27.0", True, 0)
    assert docker["missing_limits"] == ["swap", "cpu", "pids"]
    assert found["runs"] == {"recorded": 0, "live": 0, "queued": 0}


def test_people_read_the_same_in_lines(system):
    lines = system("status", scripts=docker_that(INFO)).stdout.splitlines()

    assert [line.split(":")[0] for line in lines] == [
        "sanduk",
        "home",
        "docker",
        "runs",
        "backup",
        "site",
    ]
    assert "27.0 on Linux, the one runs use, cannot limit swap, cpu, pids" in lines[2]


def test_an_engine_that_is_down_is_no_crash_but_code_1_and_says_what_helps(system):
    script = "echo 'Cannot connect to the Docker daemon' >&2; exit 1"

    done = system("status", "--json", scripts={"docker": script})

    (docker,) = told(done)["engines"]
    assert done.returncode == 1
    assert docker["answers"] is False
    assert "unset DOCKER_HOST" in docker["trouble"]


def test_without_any_engine_it_says_how_to_install_one(system):
    done = system("status")

    assert done.returncode == 1
    assert "docker:   cannot be used: " in done.stdout
    assert "install" in done.stdout


def test_a_full_disk_is_told_by_the_code(system):
    done = system("status", scripts=docker_that(INFO), SANDUK_MIN_FREE_MB=str(10**12))

    assert done.returncode == 1
    assert "(needed: 1000000000000 MB)" in done.stdout


def test_it_sees_whether_anything_listens_where_the_site_should(system):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        up = told(system("status", "--json", scripts=docker_that(INFO), SANDUK_BASE_URL=url))
    down = told(system("status", "--json", scripts=docker_that(INFO), SANDUK_BASE_URL=url))

    assert up["site"] == {"url": url, "listens": True}
    assert down["site"] == {"url": url, "listens": False}


def test_starting_what_runs_already_is_fine(system):
    done = system("start", scripts=docker_that(INFO))

    assert (done.returncode, done.stderr) == (0, "sanduk: docker is up\n")


def test_starting_dockers_daemon_is_not_ours_and_it_says_whose(system):
    done = system("start", scripts={"docker": "exit 1"})

    assert done.returncode == 2
    assert "DOCKER_HOST" in done.stderr


def test_stopping_a_daemon_of_the_whole_machine_is_not_ours(system):
    docker = system("stop", scripts=docker_that(INFO))
    podman = system("stop", "--runtime", "podman", scripts={"podman": "exit 0"})

    assert (docker.returncode, podman.returncode) == (2, 2)
    assert "stop docker`" in docker.stderr or "docker stop`" in docker.stderr
    assert "nothing to stop" in podman.stderr


def test_apples_service_is_started_and_stopped_by_its_own_command(system, tmp_path: Path):
    asked = tmp_path / "asked"
    script = f'echo "$*" >> {asked}; [ "$2" = stop ] || echo 1.2.0 is running'

    start = system("start", "--runtime", "apple", scripts={"container": script})
    stop = system("stop", "--runtime", "apple", scripts={"container": script})

    assert (start.returncode, stop.returncode) == (0, 0), (start, stop)
    assert "for everybody on this machine" in stop.stderr
    words = asked.read_text().splitlines()
    assert words[:2] == ["system start", "system status"]
    assert words[-1] == "system stop"


def test_json_goes_with_status_alone(system):
    done = system("stop", "--json", scripts=docker_that(INFO))

    assert (done.returncode, done.stderr) == (2, "sanduk: --json goes with status\n")
    assert os.linesep not in done.stderr.strip()
