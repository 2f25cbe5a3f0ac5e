"""Engines that cannot be used here are refused, with what to do about it."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

import pytest

from runs.engines import locality
from runs.engines.base import EngineUnavailable
from runs.engines.docker import Docker
from runs.engines.podman import Podman
from tests.pace import stretched
from tests.runs.engines.fake_cli import FakeCli

pytestmark = pytest.mark.anyio


def info(**fields: object) -> str:
    """A `docker info` that prints these facts."""
    facts = {"ID": "X", "ServerVersion": "20.10", "OperatingSystem": "Debian", **fields}
    return f"case $1 in info) echo '{json.dumps(facts)}';; context) echo unix:///x;; esac"


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
    assert time.monotonic() - started < stretched(2)


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


def test_a_probe_socket_fits_into_a_path_longer_than_sockets_may_have(tmp_path: Path):
    deep = tmp_path / ("d" * 150)
    deep.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        locality._bind_in(deep, listener)

    assert (deep / "socket").is_socket()
