"""The engines the suite runs on, each with a directory it may mount and a label of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from runs.engines import arguments, get_engine
from runs.engines.base import ContainerSpec, ContainerState
from runs.engines.cli import CliEngine
from runs.engines.docker import Docker
from runs.engines.podman import Podman

IMAGE = "python:3.13-slim"
PREFIX = "sanduk-test-"
ROOTLESS = f"{PREFIX}{os.getpid()}"  # sessions may run side by side
WRAPPER = """#!/bin/sh
case "$1" in start) ;; *) cd / ;; esac
exec {become} env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
    HOME={home} XDG_RUNTIME_DIR={home}/run podman "$@"
"""


@dataclass(frozen=True)
class Bench:
    """An engine, a directory its containers may use, and who owns it."""

    engine: CliEngine
    ground: Path
    uid: int
    gid: int
    labels: dict[str, str]

    def spec(self, *argv: str, **fields: object) -> ContainerSpec:
        made = ContainerSpec(
            image=IMAGE, argv=argv, labels=self.labels, user=f"{self.uid}:{self.gid}"
        )
        return replace(made, **fields)  # type: ignore[arg-type]

    def make(self, *parts: str) -> Path:
        """A directory below the ground that the container's user owns."""
        path = self.ground
        for part in parts:
            path = path / part
            path.mkdir(exist_ok=True)
            os.chown(path, self.uid, self.gid)
        return path

    async def finished(self, spec: ContainerSpec) -> tuple[bytes, bytes, ContainerState]:
        """Run a container to its end: its output and how it ended."""
        container = await self.engine.create(spec)
        process = await self.engine.start_attached(container)
        out, err = await process.communicate()
        state = await self.engine.inspect(container)
        assert state is not None
        return out, err, state


@contextlib.asynccontextmanager
async def running(
    bench: Bench, script: str
) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """A container running a shell script that has said its first line, `up`."""
    container = await bench.engine.create(bench.spec("sh", "-c", script))
    process = await bench.engine.start_attached(container)
    try:
        assert await asyncio.wait_for(process.stdout.readline(), 20) == b"up\n"
        yield container, process
    finally:
        await bench.engine.remove([container])
        await asyncio.wait_for(process.communicate(), 20)


class RootlessPodman(Podman):
    """Podman as another user, from a test that runs as root."""

    def __init__(self, wrapper: Path) -> None:
        super().__init__()
        self.cli = str(wrapper)  # type: ignore[misc]

    def is_rootless(self) -> bool:
        return True


def told(*argv: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, **options)  # type: ignore[call-overload, no-any-return]


def require_docker() -> None:
    if shutil.which("docker") is None or told("docker", "info").returncode != 0:
        pytest.skip("no Docker daemon answers")
    if told("docker", "image", "inspect", IMAGE).returncode != 0:
        pytest.skip(f"Docker has no image {IMAGE}")


def give_image(podman: str) -> None:
    """Podman gets the test image from Docker, as there may be no registry."""
    if told(podman, "image", "exists", f"localhost/{IMAGE}").returncode == 0:
        return
    require_docker()
    with subprocess.Popen(["docker", "save", IMAGE], stdout=subprocess.PIPE) as save:
        loaded = told(podman, "load", "--quiet", stdin=save.stdout)
    assert save.returncode == 0
    assert loaded.returncode == 0, loaded.stderr


def require_build(bench: Bench) -> None:
    """Rootless, a build step's network goes through a device that a normal user may open."""
    device = Path("/dev/net/tun")
    mode = device.stat().st_mode if device.exists() else 0
    if isinstance(bench.engine, RootlessPodman) and mode & 0o006 != 0o006:
        pytest.skip("rootless builds need /dev/net/tun open to all, as udev makes it")


def require_podman() -> None:
    if shutil.which("podman") is None:
        pytest.skip("podman is not installed")


def require_rootful_podman() -> None:
    require_podman()
    if os.geteuid() != 0:
        pytest.skip("a rootful Podman needs root")


def rootless_user() -> pwd.struct_passwd:
    """Who the rootless suites run as: a user made for them, or whoever runs the tests."""
    return pwd.getpwuid(os.geteuid()) if os.geteuid() else pwd.getpwnam(ROOTLESS)


@pytest.fixture(scope="session")
def rootless_home() -> Iterator[Path]:
    """The home of a normal user with a range of user ids and a Podman store of its own."""
    require_podman()
    for tool in ("newuidmap", *(() if os.geteuid() else ("useradd", "setpriv"))):
        if shutil.which(tool) is None:
            pytest.skip(f"a rootless Podman needs {tool}")
    if os.geteuid() == 0:
        yield from home_of_a_new_user()
        return
    name = rootless_user().pw_name
    if not any(
        line.startswith(f"{name}:") for line in Path("/etc/subuid").read_text().splitlines()
    ):
        pytest.skip(f"a rootless Podman needs a range of user ids for {name} in /etc/subuid")
    with tempfile.TemporaryDirectory(prefix="sanduk-podman-") as folder:
        home = Path(folder)
        prepare_rootless(home)
        try:
            yield home
        finally:
            told(str(home / "podman"), "rm", "--all", "--force", "--time", "0")
            # layers belong to the user ids of the range
            told(str(home / "podman"), "unshare", "rm", "-rf", str(home / ".local"))
            told(str(home / "podman"), "system", "migrate")


def home_of_a_new_user() -> Iterator[Path]:
    for user in pwd.getpwall():
        pid = user.pw_name.removeprefix(PREFIX)
        if user.pw_name.startswith(PREFIX) and not Path("/proc", pid).exists():
            remove_user(user.pw_name)  # a killed session left it
    made = told("useradd", "--create-home", ROOTLESS)
    assert made.returncode == 0, made.stderr
    try:
        home = Path(rootless_user().pw_dir)
        prepare_rootless(home)
        yield home
    finally:
        remove_user(ROOTLESS)


def prepare_rootless(home: Path) -> None:
    """Give a home the place, the settings, the command and the image a rootless Podman needs."""
    home.chmod(0o755)
    # Without /dev/fuse, or a kernel that podman trusts, it would copy whole images (vfs).
    settings = home / ".config" / "containers"
    settings.mkdir(parents=True)
    (settings / "storage.conf").write_text('[storage]\ndriver = "overlay"\n')
    give_image(str(rootless_command(home)))


def rootless_command(home: Path) -> Path:
    """The command that is Podman with this home, as the user of the rootless suites."""
    user = rootless_user()
    become = f"setpriv --reuid {user.pw_uid} --regid {user.pw_gid} --init-groups"
    (home / "run").mkdir(mode=0o700)
    os.chown(home / "run", user.pw_uid, user.pw_gid)
    wrapper = home / "podman"
    wrapper.write_text(WRAPPER.format(become="" if os.geteuid() else become, home=home))
    wrapper.chmod(0o755)
    return wrapper


def remove_user(name: str) -> None:
    home = Path(pwd.getpwnam(name).pw_dir)
    wrapper = home / "podman"
    if wrapper.exists():
        told(str(wrapper), "rm", "--all", "--force", "--time", "0")
        told(str(wrapper), "system", "migrate")  # ends the process that keeps its namespace
    for _ in range(3):
        if told("userdel", "--force", "--remove", name).returncode == 0:
            break
    shutil.rmtree(home, ignore_errors=True)


SKIFF = """#!/bin/sh
# skiff: docker by other words, and without docker's settings
export DOCKER_CONFIG=/nonexistent
case "$1" in
    make) shift; exec {docker} create "$@" ;;
    assemble) shift; exec {docker} build "$@" ;;
    drop)
        [ "$2" = --now ] || exit 64
        shift 2; exec {docker} rm --force "$@" ;;
    create | build | rm) echo "skiff: unknown command $1" >&2; exit 64 ;;
    *) exec {docker} "$@" ;;
esac
"""


@pytest.fixture(scope="session")
def skiff(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory, first on PATH for the session, with the command of the example engine."""
    require_docker()
    folder = tmp_path_factory.mktemp("skiff")
    (folder / "skiff").write_text(SKIFF.format(docker=shutil.which("docker")))
    (folder / "skiff").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        yield folder


@pytest.fixture(
    params=[
        "docker",
        "example",
        pytest.param("podman", marks=pytest.mark.podman),
        pytest.param("rootless", marks=pytest.mark.podman),
    ]
)
def bench(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    labels = {"sanduk.install": f"test-{secrets.token_hex(6)}", "sanduk.run": secrets.token_hex(6)}
    with tempfile.TemporaryDirectory(prefix="sanduk-engine-") as folder:
        ground = Path(folder)
        ground.chmod(0o755)
        engine: CliEngine
        uid = gid = 1000 if os.geteuid() == 0 else os.geteuid()
        if request.param == "docker":
            require_docker()
            engine = Docker()
        elif request.param == "example":
            request.getfixturevalue("skiff")
            made = get_engine("tests.engine.example_engine:Skiff")
            assert isinstance(made, CliEngine)
            engine = made
        elif request.param == "podman":
            require_rootful_podman()
            give_image("podman")
            engine = Podman()
        else:
            home = request.getfixturevalue("rootless_home")
            engine = RootlessPodman(home / "podman")
            user = rootless_user()
            uid, gid = user.pw_uid, user.pw_gid
            # The checkout may lie where the other user cannot look.
            profile = ground / "seccomp.json"
            shutil.copy(arguments.SECCOMP_PROFILE, profile)
            monkeypatch.setattr(arguments, "SECCOMP_PROFILE", profile)
        os.chown(ground, uid, gid)
        try:
            yield Bench(engine, ground, uid, gid, labels)
        finally:
            for _ in range(2):  # one that others live in goes last
                mine = f"label=sanduk.run={labels['sanduk.run']}"
                left = told(engine.cli, "ps", "-aq", "--filter", mine).stdout.split()
                for container in left:
                    told(engine.cli, *engine.remove_words(), container)
            assert told(engine.cli, "ps", "-aq", "--filter", mine).stdout == ""
