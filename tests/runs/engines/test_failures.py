"""What is said when an engine does not work: one line, and the one command that helps."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runs.engines import locality
from runs.engines.base import ContainerSpec, EngineError, EngineUnavailable
from runs.engines.docker import Docker
from runs.engines.failures import (
    build_failure,
    docker_down,
    failure,
    is_missing,
    podman_down,
    why_not_started,
    without_missing,
)
from runs.engines.podman import Podman
from runs.engines.process import Completed, last_line, printable, run, run_lines

pytestmark = pytest.mark.anyio
FakeCli = Callable[[str, str], None]


@pytest.fixture
def fake_cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCli:
    """Puts a shell script of that name first on PATH."""

    def put(name: str, script: str) -> None:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    # Docker's own socket would answer where the script is meant to.
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    return put


def info(**fields: object) -> str:
    """A `docker info` that prints these facts."""
    facts = {"ID": "X", "ServerVersion": "20.10", "OperatingSystem": "Debian", **fields}
    return f"case $1 in info) echo '{json.dumps(facts)}';; context) echo unix:///x;; esac"


@pytest.mark.parametrize(
    ("stderr", "endpoint", "present", "says"),
    [
        ("cannot connect", "unix:///var/run/docker.sock", "/run/systemd/system",
         "`sudo systemctl start docker`"),
        ("cannot connect", "unix:///var/run/docker.sock", "", "`sudo service docker start`"),
        ("cannot connect", "unix:///run/user/1000/docker.sock", "",
         "`systemctl --user start docker`"),
        ("permission denied while trying to connect to the socket: dial unix", "unix:///v.sock", "",
         "`sudo usermod -aG docker $USER`"),
        ("no route", "tcp://10.0.0.9:2375", "", "`docker context use default`"),
    ],
)  # fmt: skip
def test_a_silent_docker_daemon_is_explained(stderr: str, endpoint: str, present: str, says: str):
    text = docker_down(stderr, endpoint, exists=lambda path: path == present)

    assert says in text
    assert "\n" not in text


@pytest.mark.parametrize("endpoint", ["ssh://me@box", "unix:///not/there.sock"])
def test_a_silent_daemon_that_a_variable_chose_names_the_variable(endpoint: str):
    text = docker_down("gave up", endpoint, exists=lambda path: True, variable="DOCKER_HOST")

    assert "`unset DOCKER_HOST`" in text
    assert "systemctl" not in text


@pytest.mark.parametrize(
    "host", ["garbage", ":2375", "unix://", "unix://relative.sock", "tcp://", "foo://bar", "a\nb"]
)
async def test_a_docker_host_that_is_no_address_is_refused_before_the_client_starts(
    fake_cli: FakeCli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str
):
    fake_cli("docker", f"touch {tmp_path}/started; exit 1")
    monkeypatch.setenv("DOCKER_HOST", host)
    docker = Docker()

    for question in (docker.ready(), docker.require_local(), docker.image("a:1")):
        with pytest.raises(EngineUnavailable, match="`unset DOCKER_HOST`") as caught:
            await question
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "started").exists()


async def test_a_docker_context_that_is_not_there_names_the_variable(
    fake_cli: FakeCli, monkeypatch: pytest.MonkeyPatch
):
    fake_cli("docker", "echo 'context not found' >&2; exit 1")
    monkeypatch.delenv("DOCKER_HOST")
    monkeypatch.setenv("DOCKER_CONTEXT", "nope")

    with pytest.raises(EngineUnavailable, match="`unset DOCKER_CONTEXT`"):
        await Docker().require_local()


@pytest.mark.parametrize(
    ("stderr", "says"),
    [
        ("exec: newuidmap: executable file not found in $PATH", "apt-get install uidmap"),
        ("no subuid ranges found for user me", "usermod --add-subuids"),
        ("mkdir /run/user/1000/libpod: permission denied", "log in again"),
        ("something else", "something else"),
    ],
)
def test_a_podman_that_does_not_work_is_explained(stderr: str, says: str):
    assert says in podman_down(stderr)


async def test_an_engine_that_is_not_installed_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(EngineUnavailable, match=r"apt-get install docker\.io"):
        await Docker().ready()
    with pytest.raises(EngineUnavailable, match="apt-get install podman"):
        await Podman().ready()
    with pytest.raises(EngineUnavailable, match=r"nor `podman`.*scripts/engine-up"):
        await Docker().ready()


async def test_an_engine_that_is_not_installed_points_to_the_one_that_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "podman").write_text("")
    (tmp_path / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(EngineUnavailable, match="use `--runtime podman`"):
        await Docker().ready()


async def test_a_client_that_exits_cleanly_without_an_answer_is_no_daemon(fake_cli: FakeCli):
    fake_cli("docker", """echo '{"ServerVersion": ""}'; echo 'cannot connect' >&2""")

    with pytest.raises(EngineUnavailable, match="does not"):
        await Docker().ready()


async def test_a_snap_is_refused(fake_cli: FakeCli):
    fake_cli("docker", info(OperatingSystem="Ubuntu Core 22"))

    with pytest.raises(EngineUnavailable, match="snap remove docker"):
        await Docker().ready()


@pytest.mark.parametrize("option", ["name=rootless", "name=userns"])
async def test_a_docker_that_maps_users_is_refused(fake_cli: FakeCli, option: str):
    fake_cli("docker", info(SecurityOptions=["name=seccomp,profile=default", option]))

    with pytest.raises(EngineUnavailable, match="--runtime podman"):
        await Docker().ready()


async def test_podman_in_dockers_clothes_is_recognised(fake_cli: FakeCli):
    fake_cli("docker", """echo '{"host": {"conmon": {}}}'; echo 'Emulate Docker CLI' >&2""")

    with pytest.raises(EngineUnavailable, match="stand-in: use `--runtime podman`"):
        await Docker().ready()


@pytest.mark.parametrize("host", ["ssh://me@box", "tcp://10.0.0.9:2375", "npipe:////./pipe/x"])
async def test_a_remote_daemon_is_refused_without_asking_it(
    fake_cli: FakeCli, monkeypatch: pytest.MonkeyPatch, host: str
):
    fake_cli("docker", "sleep 30")
    monkeypatch.setenv("DOCKER_HOST", host)
    started = time.monotonic()

    with pytest.raises(EngineUnavailable, match="remote"):
        await Docker().require_local()
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    ("path", "machine"),
    [
        ("/home/me/.docker/desktop/docker.sock", "Docker Desktop"),
        ("/home/me/.colima/default/docker.sock", "Colima"),
        ("/home/me/.lima/docker/sock/docker.sock", "Lima"),
        ("/home/me/.rd/docker.sock", "Rancher Desktop"),
    ],
)
def test_a_daemon_in_a_virtual_machine_is_known_by_its_socket(path: str, machine: str):
    assert machine in locality.endpoint_is_elsewhere(f"unix://{path}")
    assert locality.endpoint_is_elsewhere("unix:///var/run/docker.sock") == ""


async def test_a_daemon_on_another_kernel_is_refused(fake_cli: FakeCli):
    fake_cli("docker", info(KernelVersion="1.2.3-virtual"))

    with pytest.raises(EngineUnavailable, match=r"virtual machine \(kernel 1\.2\.3-virtual\)"):
        await Docker().require_local()


async def test_a_daemon_that_does_not_see_our_files_is_refused(fake_cli: FakeCli, tmp_path: Path):
    kernel = os.uname().release
    fake_cli(
        "docker",
        f"""
{info(KernelVersion=kernel)}
case $1 in
import) echo sha256:abc;;
create) echo 'bind source path does not exist: /tmp/probe' >&2; exit 1;;
esac""",
    )

    with pytest.raises(EngineUnavailable, match="does not see this machine's files"):
        await Docker().require_local(directory=tmp_path)
    assert not list(tmp_path.glob("probe-*"))  # noqa: ASYNC240


async def test_a_daemon_that_shows_another_file_under_that_name_is_refused(
    fake_cli: FakeCli, tmp_path: Path
):
    fake_cli(
        "docker",
        f"""
{info(KernelVersion=os.uname().release)}
case $1 in
import) echo sha256:abc;;
create) echo abc;;
cp) d=$(mktemp -d); echo other > $d/file; tar -C $d -c file; rm -r $d;;
esac""",
    )

    with pytest.raises(EngineUnavailable, match="does not see"):
        await Docker().require_local(directory=tmp_path)


async def test_a_podman_that_is_remote_is_refused(fake_cli: FakeCli):
    facts = {"host": {"serviceIsRemote": True}, "version": {"Version": "5.0"}}
    fake_cli("podman", f"echo '{json.dumps(facts)}'")

    with pytest.raises(EngineUnavailable, match="remote service"):
        await Podman().require_local()


async def test_limits_that_cannot_be_enforced_are_told(fake_cli: FakeCli):
    facts = {
        "host": {
            "cgroupVersion": "v2",
            "cgroupControllers": ["memory", "pids"],
            "security": {"rootless": True},
        },
        "version": {"Version": "5.0"},
    }
    fake_cli("podman", f"echo '{json.dumps(facts)}'")

    assert (await Podman().ready()).missing_limits == ("cpu",)


@pytest.mark.parametrize("make", [Docker, Podman])
async def test_nothing_is_concluded_when_the_engine_cannot_be_asked(
    fake_cli: FakeCli, make: type[Docker] | type[Podman]
):
    engine = make()
    fake_cli(engine.cli, "echo 'cannot reach anything' >&2; exit 1")
    labels = {"sanduk.run": "u1"}

    for question in (
        engine.containers(labels),
        engine.networks(labels),
        engine.image("a:1"),
        engine.inspect("abc"),
        engine.remove(["abc"]),
        engine.stop("abc", grace_s=1),
        engine.remove_network("abc"),
    ):
        with pytest.raises(EngineError, match="cannot reach anything"):
            await question


async def test_a_daemon_that_is_not_there_makes_the_list_raise(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")

    with pytest.raises(EngineError):
        await Docker().containers({"sanduk.run": "u1"})


@pytest.mark.parametrize(
    "answer", ["nonsense", "[", '{"Id": 1}', '[{"Id": null}]', '[{"Id": "a", "State": []}]']
)
async def test_an_answer_that_cannot_be_read_is_an_error(fake_cli: FakeCli, answer: str):
    fake_cli("docker", f"echo '{answer}'")

    with pytest.raises(EngineError, match="cannot be read"):
        await Docker().inspect("abc")


async def test_a_create_without_an_id_is_an_error(fake_cli: FakeCli):
    fake_cli("docker", "echo done")
    spec = ContainerSpec(image="a:1", argv=(), labels={"sanduk.run": "u"}, user="1:1")

    with pytest.raises(EngineError, match="no id"):
        await Docker().create(spec)


@pytest.mark.parametrize(
    "stderr",
    [
        "Error: could not find an available, non-overlapping IPv4 address pool among the defaults",
        "Error: all predefined address pools have been fully subnetted",
        "Error: could not find free subnet from subnet pools",
    ],
)
def test_a_full_address_pool_names_the_command_that_empties_it(stderr: str):
    assert "`sanduk clean`" in str(failure("cannot create it", Completed(1, b"", stderr)))


def test_what_is_gone_is_told_from_what_failed():
    gone = "Error: No such container: a\nError: no container with name or ID b"
    mixed = f"{gone}\nError: device is busy"

    assert is_missing(gone)
    assert not is_missing(mixed)
    assert not is_missing("")
    assert without_missing(mixed) == "Error: device is busy"


def test_error_text_is_one_short_line_without_control_characters():
    told = last_line("first\nred \x1b[31m and \u202e" + "x" * 1000 + "\n\n")

    assert told.startswith("red \\x1b[31m and \\u202e")
    assert len(told) == 400
    assert told.endswith("…")
    assert last_line("the cause\nSee 'docker create --help'.") == "the cause"
    assert printable("plain ünï") == "plain ünï"


async def test_a_command_that_hangs_is_ended_and_reported():
    with pytest.raises(EngineError, match=r"`sleep` did not answer within 0\.2 s"):
        await run(("sleep", "30"), timeout_s=0.2)


async def test_a_command_is_out_of_reach_of_the_terminal():
    script = "import os, sys; print(os.getsid(0) == os.getpid(), repr(sys.stdin.read()))"
    done = await run((sys.executable, "-c", script), timeout_s=30)

    assert done.text == "True ''"


async def test_a_command_that_is_ended_takes_its_children_along(tmp_path: Path):
    """A rootless podman works in a child of the process we start."""
    with pytest.raises(EngineError, match="did not answer"):
        await run(("sh", "-c", f"(sleep 0.6; touch {tmp_path}/late) & wait"), timeout_s=0.2)

    await asyncio.sleep(0.8)
    assert not (tmp_path / "late").exists()


def test_a_build_that_failed_is_told_in_one_line_and_its_last_lines_apart():
    lines = [
        "DEPRECATED: The legacy builder is deprecated and will be removed in a future release.",
        "            BuildKit is currently disabled; enable it by removing the DOCKER_BUILDKIT=0",
        "            environment-variable.",
        "Step 2/3 : RUN false",
        "The command '/bin/sh -c false' returned a non-zero code: 1",
    ]
    error = build_failure("mine:1", lines)

    assert str(error) == f"building mine:1 failed: {lines[-1]}"
    assert error.lines == tuple(lines[-2:])


@pytest.mark.parametrize(
    ("error", "says"),
    [
        ('runc create failed: error setting cgroup config: write "100": /sys/fs/cgroup/cpu/docker/'
         "0123/cpu.cfs_quota_us: invalid argument: unknown", "could not set its cpu limit"),
        ("a: b: write /sys/fs/cgroup/x/memory.max: invalid argument", "its memory limit"),
        ("create failed: starting it: exec: x: permission denied: unknown", "x: permission denied"),
        ("", "did not say why"),
    ],
)  # fmt: skip
def test_a_container_that_did_not_start_is_explained_shortly(error: str, says: str):
    told = why_not_started(error)

    assert says in told
    assert len(told) <= 160


async def test_a_command_that_floods_is_ended_and_reported():
    with pytest.raises(EngineError, match="printed more than"):
        await run(("yes",), timeout_s=30)


async def test_lines_of_a_build_are_capped_and_printable():
    lines: list[str] = []
    script = (
        "import sys; sys.stdout.write('\\x1b[91ma\\x1b[0m\\rb\\x1b[2J\\n' + 'y' * 10**6 + '\\nend')"
    )
    code = await run_lines((sys.executable, "-c", script), lines.append, timeout_s=30)

    assert code == 0
    assert lines[:2] == ["a", "b\\x1b[2J"]
    assert all(len(line) <= 2000 for line in lines)
    assert lines[-1] == "end"


def test_a_probe_socket_fits_into_a_path_longer_than_sockets_may_have(tmp_path: Path):
    deep = tmp_path / ("d" * 150)
    deep.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        locality._bind_in(deep, listener)

    assert (deep / "socket").is_socket()
