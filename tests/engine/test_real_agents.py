"""The real pi, codex and claude, sealed, on the rehearsal model, on every engine that works."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.engines import arguments
from tests.engine.engine_fixtures import rootless_command, rootless_user, told
from tests.engine.running import (
    DONE,
    SCRIPTED,
    Installation,
    give_images,
    image_tags,
    installed,
)

pytestmark = pytest.mark.engine
SHOW = """shown=$1 hidden=$2 aside=$3; shift 3
mount --bind "$shown" "$aside"; mount -t tmpfs -o mode=0755 tmpfs "$hidden"; mkdir -p "$shown"
mount --bind "$aside" "$shown"; umount "$aside"; exec "$@"
"""
AGENTS = ["pi", "codex", "claude"]
TASK = "Look at every file here and write down what you find."


@pytest.fixture(scope="session")
def agent_images(docker_ready: Path) -> None:
    """The agents' images on Docker, built through the command where they are missing."""
    for agent in AGENTS:
        (tag,) = image_tags(agent)
        if told("docker", "image", "inspect", tag).returncode == 0:
            continue
        with installed("docker") as made:
            done = made.sanduk("build", agent, limit_s=280)
            assert done.code == 0, done


@pytest.fixture(scope="session")
def podman_images(agent_images: None, podman_ready: Path) -> None:
    give_images("podman", *AGENTS)


@pytest.fixture(scope="session")
def rootless_images(agent_images: None, rootless_home: Path) -> Path:
    """One agent's image only: copying all three into a new store takes a minute."""
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


@pytest.mark.parametrize("agent", AGENTS)
def test_it_works_sealed_and_its_work_is_real(place: Installation, agent: str):
    works_sealed(place, agent)


@pytest.mark.podman
def test_it_works_sealed_for_a_normal_user_without_root(rootless: Installation):
    works_sealed(rootless, "pi")

    assert rootless.home.stat().st_uid == rootless_user().pw_uid


def works_sealed(place: Installation, agent: str) -> None:
    """A nonce's digest can only come from a tool that ran in the container."""
    nonce = secrets.token_hex(16)
    digest = hashlib.sha256(nonce.encode()).hexdigest()
    place.work.mkdir()
    (place.work / "nonce.txt").write_text(nonce)
    owner = place.ground.stat().st_uid or 1000
    for path in (place.work, place.work / "nonce.txt"):
        os.chown(path, owner, owner)
    done = place.sanduk(
        "run", "--runtime", place.engine, "--agent", agent, "--provider", "rehearsal",
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
    """L-17: 1 MiB on standard input, and a task that looks like a flag."""
    task = "--help me"
    if kind == "large":  # codex takes 2**20 characters, with the words about the report
        task = "Read this carefully. " + "lorem " * ((2**20 - 1000) // 6)
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
