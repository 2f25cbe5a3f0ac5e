"""What is said when an engine fails: one line, and the command that helps."""

from __future__ import annotations

import pytest

from runs.engines.base import ContainerSpec, EngineError
from runs.engines.docker import Docker
from runs.engines.failures import (
    bad_docker_context,
    build_failure,
    docker_down,
    failure,
    is_missing,
    podman_down,
    why_not_started,
    without_missing,
)
from runs.engines.podman import Podman
from runs.engines.process import Completed, last_line, printable
from tests.runs.engines.fake_cli import FakeCli

pytestmark = pytest.mark.anyio


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


CRASH = """fatal error: failed to reserve page summary memory

runtime stack:
runtime.throw({0x2335a4?, 0x7f8587a64008?})
\t/usr/local/go/src/runtime/panic.go:1101 +0x4a fp=0x7fff11c52120
runtime.rt0_go()
\t/usr/local/go/src/runtime/asm_amd64.s:349 +0x120 fp=0x7ffe61bca4a8 sp=0x7ffe61bca4a0
"""


def test_a_client_that_crashed_is_told_by_its_first_line_and_not_as_a_daemon_that_is_down():
    first = "the client crashed: fatal error: failed to reserve page summary memory"
    memory = "it may have too little memory here"

    for told in (
        bad_docker_context("", CRASH),
        bad_docker_context("mine", CRASH),
        docker_down(CRASH, "unix:///var/run/docker.sock", exists=lambda _: True),
        podman_down(CRASH),
    ):
        assert first in told
        assert memory in told
        assert "asm_amd64" not in told
        assert "daemon" not in told
    assert str(failure("cannot stop it", Completed(2, b"", CRASH))) == f"cannot stop it: {first}"


def test_a_program_that_panics_in_a_build_is_no_client_that_crashed():
    error = build_failure("mine:1", ["panic: no tests", "exit status 2", "returned a code: 1"])

    assert "crashed" not in str(error)


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
