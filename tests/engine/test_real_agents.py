"""The real agents, sealed, on the rehearsal model; pi, codex and claude on every engine."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import pwd
import secrets
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay import Protocol, create_rehearsal_app, get_provider
from relay.server import serving
from runs.agents import get_agent
from runs.engines import arguments
from tests.engine.engine_fixtures import rootless_command, rootless_user, told
from tests.engine.running import (
    AGENTS,
    DONE,
    SCRIPTED,
    Installation,
    give_images,
    installed,
)

pytestmark = pytest.mark.engine
ON_PODMAN = ["pi", "codex", "claude"]
ALSO: list[tuple[str, Protocol]] = [
    (agent, protocol)
    for agent in AGENTS
    for number, protocol in enumerate(get_agent(agent).protocols)
    if number or agent not in ON_PODMAN
]
ONE_PROTOCOL = """
[one-protocol]
scheme = "http"
host = "127.0.0.1"
port = {port}
prefix = "/v1"
needs_key = false
default_model = "rehearsal"
[[one-protocol.routes]]
path = "{path}"
protocol = "{protocol}"
query = ["beta"]
accepts = ["x-api-key", "bearer"]
[[one-protocol.routes]]
path = "/v1/models"
methods = ["GET"]
accepts = ["x-api-key", "bearer"]
"""
SHOW = """shown=$1 hidden=$2 aside=$3; shift 3
mount --bind "$shown" "$aside"; mount -t tmpfs -o mode=0755 tmpfs "$hidden"; mkdir -p "$shown"
mount --bind "$aside" "$shown"; umount "$aside"; exec "$@"
"""
TASK = "Look at every file here and write down what you find."


@pytest.fixture(scope="session")
def podman_images(agent_images: None, podman_ready: Path) -> None:
    give_images("podman", *ON_PODMAN)


@pytest.fixture(scope="session")
def rootless_images(agent_images: None, rootless_home: Path) -> Path:
    """One agent's image only: copying all of them into a new store takes a minute."""
    give_images(str(rootless_home / "podman"), "link", "pi")
    return rootless_home


@pytest.fixture(scope="session")
def unconfigured_home(docker_ready: Path, rootless_home: Path) -> Iterator[Path]:
    """Another home of that user, with podman as it is by itself: it may copy whole images."""
    user = rootless_user()
    home = rootless_home / "plain"
    home.mkdir(mode=0o700)
    os.chown(home, user.pw_uid, user.pw_gid)
    wrapper = rootless_command(home)
    try:
        give_images(str(wrapper), "link", SCRIPTED)
        yield home
    finally:
        told(str(wrapper), "rm", "--all", "--force", "--time", "0")
        told(str(wrapper), "unshare", "rm", "-rf", str(home / ".local"))
        told(str(wrapper), "system", "migrate")
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def scripted_model() -> Iterator[int]:
    """The scripted model as a server outside of the relay; its port on the loopback address."""
    bound = socket.create_server(("127.0.0.1", 0))
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with serving(create_rehearsal_app(), bound):
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    yield bound.getsockname()[1]
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


@pytest.fixture(params=["docker", pytest.param("podman", marks=pytest.mark.podman)])
def place(request: pytest.FixtureRequest) -> Iterator[Installation]:
    request.getfixturevalue("agent_images" if request.param == "docker" else "podman_images")
    with installed(request.param, like=request.getfixturevalue(f"{request.param}_ready")) as made:
        yield made


@pytest.fixture
def rootless(rootless_images: Path) -> Iterator[Installation]:
    with installed("podman") as made:
        become(made, rootless_user(), rootless_images)
        yield made


def first_closed(path: Path) -> Path | None:
    """The first directory on the way to `path` that others may not pass; None: there is none."""
    way = [*reversed(path.resolve().parents)]
    return next((each for each in way if not each.stat().st_mode & 0o001), None)


def become(made: Installation, user: pwd.struct_passwd, home: Path) -> None:
    """Let the commands of an installation run as a normal user, with an own podman store.

    The user gets no right that others have not: an interpreter that lies where only root looks is
    shown at its place in mounts of the command's own.
    """
    made.environment |= {"HOME": str(home), "XDG_RUNTIME_DIR": f"{home}/run"}
    made.cli = str(home / "podman")
    if os.geteuid():
        return
    for folder in (made.ground, *made.ground.iterdir()):
        os.chown(folder, user.pw_uid, user.pw_gid)
    if closed := first_closed(Path(arguments.SECCOMP_PROFILE)):
        pytest.skip(f"a normal user cannot look into {closed}, where this checkout lies")
    hidden = first_closed(Path(sys.base_prefix))
    show = (
        "unshare", "--mount", "sh", "-euc", SHOW, "sh",
        sys.base_prefix, str(hidden), str(made.ground / "tmp"),
    )  # fmt: skip
    made.as_user = (
        *(show if hidden else ()),
        "setpriv", "--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--init-groups",
    )  # fmt: skip


@pytest.mark.podman
def test_a_normal_user_needs_no_configuration_of_podman(unconfigured_home: Path):
    user = rootless_user()
    with installed("podman") as made:
        become(made, user, unconfigured_home)
        made.work.mkdir()
        os.chown(made.work, user.pw_uid, user.pw_gid)
        done = made.sanduk(*made.words(f"id -u > mine; {DONE}", "-q"), limit_s=240)

        assert (done.code, done.err) == (0, "")
        assert (made.work / "mine").read_text().strip() == str(user.pw_uid)
        assert (made.work / "mine").stat().st_uid == user.pw_uid
        assert "sealed" in made.row["certificate"]
        made.nothing_left()


@pytest.mark.parametrize("agent", ON_PODMAN)
def test_it_works_sealed_and_its_work_is_real(place: Installation, agent: str):
    works_sealed(place, agent)


@pytest.mark.podman
def test_it_works_sealed_for_a_normal_user_without_root(rootless: Installation):
    works_sealed(rootless, "pi")

    assert rootless.home.stat().st_uid == rootless_user().pw_uid


@pytest.mark.parametrize(("agent", "protocol"), ALSO)
def test_it_works_sealed_with_every_protocol_it_speaks(
    agent_images: None, docker: Installation, scripted_model: int, agent: str, protocol: Protocol
):
    """Where it prefers another, the scripted model is a provider that speaks this one alone."""
    provider = "rehearsal"
    if protocol != get_agent(agent).protocols[0]:
        provider = "one-protocol"
        path = next(r.path for r in get_provider("rehearsal").routes if r.protocol == protocol)
        (docker.home / "providers.toml").write_text(
            ONE_PROTOCOL.format(port=scripted_model, path=path, protocol=protocol)
        )
    works_sealed(docker, agent, provider)

    calls = [call for call in docker.show()["relay_calls"] if call["protocol"]]
    assert {call["protocol"] for call in calls} == {protocol}


def works_sealed(place: Installation, agent: str, provider: str = "rehearsal") -> None:
    """A nonce's digest can only come from a tool that ran in the container."""
    nonce = secrets.token_hex(16)
    digest = hashlib.sha256(nonce.encode()).hexdigest()
    place.work.mkdir()
    (place.work / "nonce.txt").write_text(nonce)
    owner = place.ground.stat().st_uid or 1000
    for path in (place.work, place.work / "nonce.txt"):
        os.chown(path, owner, owner)
    done = place.sanduk(
        "run", "--runtime", place.engine, "--agent", agent, "--provider", provider,
        "--workdir", str(place.work), "--json", TASK, limit_s=120,
    )  # fmt: skip
    assert done.code == 0, done
    run = json.loads(done.out)
    shown = place.show(run["run"])

    assert run["outcome"] == "succeeded"
    assert digest in (place.work / "REPORT.md").read_text()
    assert digest in run["report"]["text"]
    assert digest in run["final_text"]  # the model read it in a request that the relay carried
    assert run["calls"]["completed"] >= 2
    assert run["calls"]["refused"] == 0
    assert run["seal"].startswith("sealed: nothing answers but the relay")
    assert any(event["kind"] == "tool" for event in shown["trace"])
    assert all(call["completed"] for call in shown["relay_calls"] if call["protocol"])
    assert {"host", "metadata", "ipv6", "dns"} <= {
        c["name"] for c in shown["certificate"]["checks"] if c["verdict"] == "closed"
    }
    place.nothing_left()


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("kind", ["large", "dash"])
def test_its_task_arrives_whole(agent_images: None, docker_ready: Path, agent: str, kind: str):
    """L-17: 1 MiB on standard input, 128 KiB as an argument, and what looks like a flag."""
    task = "--help me"
    if kind == "large":  # codex takes 2**20 characters, with the words about the report
        most = 2**20 if get_agent(agent).takes_stdin else 2**17
        task = "Read this carefully. " + "lorem " * ((most - 1000) // 6)
    with installed("docker", like=docker_ready) as made:
        words = [
            "run", "-q", "--agent", agent, "--provider", "rehearsal",
            "--workdir", str(made.work), "--json",
        ]  # fmt: skip
        if kind == "dash":
            done = made.sanduk(*words, "--", task, limit_s=120)
        else:
            done = made.sanduk(*words, "--task-file", "-", stdin=task.encode(), limit_s=120)
        assert done.code == 0, done
        shown = made.show()
        largest = max(call["bytes_in"] for call in shown["relay_calls"])

        assert shown["outcome"] == "succeeded"
        assert shown["report"]["state"] == "saved"
        assert largest > len(task)
        made.nothing_left()
