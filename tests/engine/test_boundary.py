"""The boundary suite on real engines: it holds, and each probe can fail."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sanduk_site.boundary.probes import BY_NAME
from tests.engine.engine_fixtures import told
from tests.engine.running import (
    Done,
    Installation,
    build_missing,
    eventually,
    give_images,
    image_tags,
    installed,
)
from tests.engine.test_real_agents import rootless, rootless_images

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
__all__ = ["rootless", "rootless_images"]  # fixtures
BROWSER = {"browser", "browser_reach", "browser_gone"}


@pytest.fixture(scope="session")
def pi_image(docker_ready: Path) -> None:
    build_missing("pi")


@pytest.fixture
def probed(docker: Installation, pi_image: None) -> Iterator[Any]:
    """probed(engine, probes...): the suite on one of `tests.engine.weakened`, by probe."""

    def run(engine: str, *names: str) -> dict[str, dict[str, str]]:
        flags = [word for name in names for word in ("--probe", name)]
        done = docker.sanduk(
            "doctor", "--boundary", "--json", "--agent", "pi", *flags,
            "--engine", f"tests.engine.weakened:{engine}",
            limit_s=300, PYTHONPATH=str(ROOT),
        )  # fmt: skip
        assert done.out, done
        assert done.code == (0 if json.loads(done.out)["holds"] else 1), done
        return {each["name"]: each for each in json.loads(done.out)["probes"]}

    yield run
    for process in survivors():
        told("kill", "-9", process)


def survivors() -> list[str]:
    """What a box that nobody ends has left on this host."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if b": boundary-browser-" in command:
            found.append(folder.name)
    return found


def broken(found: dict[str, dict[str, str]]) -> dict[str, str]:
    return {name: each["why"] for name, each in found.items() if each["verdict"] == "broken"}


def verdicts(done: Done) -> dict[str, str]:
    return {each["name"]: each["verdict"] for each in json.loads(done.out)["probes"]}


def test_every_probe_holds_on_the_engine_as_it_is(installation: Installation, pi_image: None):
    give_images(installation.engine, "pi") if installation.engine != "docker" else None
    done = installation.sanduk(
        "doctor", "--boundary", "--json", "--agent", "pi", "--engine", installation.engine,
        limit_s=400,
    )  # fmt: skip

    assert done.code == 0, done
    expected = {name: "not tried" if name in BROWSER else "held" for name in BY_NAME}
    assert verdicts(done) == expected, done.out
    posture = json.loads(done.out)["posture"]
    assert posture[0] == f"Every probe that could be tried held: {len(BY_NAME) - 3} of 27."
    assert any("SHARED" in sentence for sentence in posture)
    assert any(f"Engine: {installation.engine}" in sentence for sentence in posture)
    installation.nothing_left(within_s=5)


@pytest.mark.podman
def test_for_a_normal_user_without_root_it_holds_but_for_limits_nobody_can_set_there(
    rootless: Installation,
):
    done = rootless.sanduk(
        "doctor", "--boundary", "--json", "--agent", "pi", "--engine", "podman", limit_s=500,
    )  # fmt: skip

    posture = json.loads(done.out)["posture"]
    assert any("The engine is rootless" in sentence for sentence in posture)
    # on cgroups v1 nobody but root can set limits; that is told, and nothing else is broken
    unlimited = any("cannot limit memory" in sentence for sentence in posture)
    expected = {name: "not tried" if name in BROWSER else "held" for name in BY_NAME}
    assert verdicts(done) == expected | ({"limits": "broken"} if unlimited else {}), done.out
    assert done.code == (1 if unlimited else 0)
    rootless.nothing_left(within_s=5)


def test_under_gvisor_it_holds_and_the_posture_says_whose_kernel_it_is(
    podman_ready: Path, pi_image: None, needs_root: None
):
    runsc = shutil.which("runsc")
    if runsc is None:
        pytest.skip("there is no runsc; apt-get install runsc")
    give_images("podman", "pi")
    with installed("podman", like=podman_ready) as made:
        wrapper = made.ground / "runsc-ptrace"
        wrapper.write_text(f'#!/bin/sh\nexec {runsc} --platform=ptrace --network=host "$@"\n')
        wrapper.chmod(0o755)
        done = made.sanduk(
            "doctor", "--boundary", "--json", "--agent", "pi", "--engine", "podman",
            "--oci-runtime", str(wrapper), limit_s=400,
        )  # fmt: skip

    assert done.code == 0, done
    untried = {name for name, verdict in verdicts(done).items() if verdict == "not tried"}
    assert untried == BROWSER | {"seccomp", "limits"}
    said = json.loads(done.out)
    assert said["engine"]["shares_kernel"] is False
    assert any("a kernel of its own" in sentence for sentence in said["posture"])
    assert not any("SHARED" in sentence for sentence in said["posture"])


def test_a_mounted_host_is_found_by_path_mount_inode_push_and_mark(probed):
    names = ("host_secrets", "repository", "push", "devices", "destroyed", "record")
    found = broken(probed("HostFiles", *names))

    assert set(found) == {*names} - {"devices"}
    assert "the host's file was found as" in found["host_secrets"]
    for way in ("by path", "by mount", "by inode"):
        assert way in found["repository"], found
    assert "git push to" in found["push"]
    assert "the host's repository is not as it was" in found["destroyed"]
    assert "a box wrote into" in found["record"]


def test_a_network_is_found_by_its_routes_its_gateway_and_its_neighbours(probed):
    names = ("exfiltration", "gateway", "neighbour", "seccomp")
    found = broken(probed("Bridged", *names))

    assert set(found) == {"exfiltration", "gateway", "neighbour"}
    assert "there is a route to 192.0.2.1" in found["exfiltration"]
    assert "arrived on this host" in found["exfiltration"] or "answered" in found["exfiltration"]
    assert "answers at port" in found["gateway"]
    assert "the box beside it answers" in found["neighbour"]


@pytest.fixture(scope="module")
def loose_names() -> dict[str, str]:
    """What each probe says of a box in which its own protection is let go."""
    return {
        "names": "/etc/resolv.conf names the server 192.0.2.53",
        "engine_socket": "/var/run/docker.sock is there",
        "privileges": "a set-uid program may gain rights",
        "seccomp": "no filter of system calls is on",
        "devices": "the device /dev/odd is there",
        "limits": "there is no limit on",
        "agent": "sanduk-pi",
        "key": "the provider's key is in the box",
    }


def test_each_protection_that_is_let_go_breaks_its_own_probe(probed, loose_names):
    found = broken(probed("Loose", *loose_names, "allowed_call", "clone", "gateway"))

    assert set(found) == set(loose_names)
    for name, word in loose_names.items():
        assert word in found[name], (name, found[name])
    assert "host.docker.internal resolves" in found["names"]
    assert "CapBnd" in found["privileges"]
    assert "the system call add_key is let in" in found["seccomp"]


def test_a_model_that_is_asked_past_the_relay_is_found(probed):
    found = broken(probed("Direct", "base_url", "allowed_call", "key"))

    assert set(found) == {"base_url", "allowed_call"}
    assert "192.0.2.1" in found["base_url"]


def test_a_relay_that_collects_and_a_clone_that_knows_its_origin_are_found(probed):
    found = broken(probed("Collecting", "streaming", "clone", "allowed_call"))

    assert set(found) == {"streaming", "clone"}
    assert "in one piece" in found["streaming"]
    assert "the remote origin" in found["clone"]


@pytest.mark.parametrize(
    ("engine", "name"), [("OpenDoor", "door_refuses"), ("ShutDoor", "door_allows")]
)
def test_a_door_that_is_open_and_one_that_is_shut_are_found(probed, engine: str, name: str):
    found = broken(probed(engine, "door_refuses", "door_allows"))

    assert set(found) == {name}


def test_a_box_that_nobody_removes_is_found(probed):
    found = broken(probed("Undying", "destroyed"))

    assert "is still there" in found["destroyed"]


def test_trust_in_what_a_box_left_is_found(probed):
    found = broken(probed("Trusting", "destroyed", "record", "patch", "artifact"))

    assert set(found) == {"record", "patch", "artifact"}
    assert "without a seal certificate" in found["record"]
    assert "a program of the box's ran on this host" in found["patch"]
    assert "a file of the host's is among them" in found["artifact"]


def test_a_browser_in_the_image_answers_and_is_held_as_the_box_is(probed):
    found = probed("WithBrowser", *BROWSER)

    assert {each["verdict"] for each in found.values()} == {"held"}, found


def test_a_browser_that_is_not_held_is_found(probed):
    found = broken(probed("WithLooseBrowser", *BROWSER))

    assert set(found) == BROWSER
    assert "does not answer at its debugging port" in found["browser"]
    assert "the browser shows" in found["browser_reach"]
    assert "is still there" in found["browser_gone"]


def test_no_probe_is_without_a_box_that_breaks_it():
    text = Path(__file__).read_text()

    assert not [name for name in BY_NAME if f'"{name}"' not in text]


def test_a_box_that_does_not_come_to_be_is_no_success(docker: Installation, pi_image: None):
    where = docker.shadow("docker", 'case " $* " in *" create "*) exit 1 ;; esac\nexec $REAL "$@"')
    done = docker.sanduk(
        "doctor", "--boundary", "--agent", "pi", "--engine", "docker", "--probe", "push", **where
    )

    assert done.code == 1, done
    assert "not tried  push:" in done.out
    assert "NOT PROVED: no box came to be" in done.out
    assert "does NOT hold" not in done.out


def test_a_ctrl_c_in_the_middle_leaves_nothing(docker: Installation, pi_image: None):
    going = docker.start("doctor", "--boundary", "--agent", "pi", "--engine", "docker")
    going.until("a sealed box, with a neighbour beside it")
    eventually(lambda: docker.containers("shell"), 60)
    done = going.signal(signal.SIGINT).end(limit_s=120)

    assert done.code == 130, done
    assert "Traceback" not in done.err
    assert not list(Path(docker.environment["TMPDIR"]).glob("sanduk-boundary-*"))
    docker.nothing_left(within_s=20)


def test_an_agent_a_probe_and_a_runtime_that_nobody_knows_are_refused(docker: Installation):
    for flags, word in (
        (("--agent", "nobody"), "nobody"),
        (("--probe", "nothing"), "there are"),
        (("--engine", "docker", "--oci-runtime", "nothing"), "docker knows"),
    ):
        done = docker.sanduk("doctor", "--boundary", *flags)
        assert done.code == 2, done
        assert word in done.line
    assert image_tags("pi")
