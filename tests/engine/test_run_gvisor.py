"""Sealed runs whose agent runs under gVisor: another kernel inside, the same seal and relay.

gVisor shares the link's network only with `--network=host`, which means the container's own; its
ptrace platform needs no virtualisation. Both go into a wrapper, as docs/engines.md says.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.running import Installation, installed

pytestmark = [pytest.mark.engine, pytest.mark.podman]
WRAPPER = '#!/bin/sh\nexec {runsc} --platform=ptrace --network=host "$@"\n'
ASK = """
say() { printf '{"type": "%s", "text": "%s", "ok": true}\\n' "$1" "$2"; }
say text "kernel $(uname -v | tr -d '#')"
say text "interfaces $(grep -c : /proc/net/dev) user $(id -u):$(id -g)"
curl -s --max-time 2 http://192.0.2.1/ || say text "no way out: $?"
curl -s -o answer -H "Authorization: Bearer $RELAY_TOKEN" -H "content-type: application/json" \\
    -d '{"model": "rehearsal", "messages": [{"role": "user", "content": "hello"}]}' \\
    "$RELAY_URL/chat/completions"
sleep 1
say result done
exit
"""


@pytest.fixture
def gvisor(podman_ready: Path, needs_root: None) -> Iterator[tuple[Installation, str]]:
    """An installation on podman, and what `--oci-runtime` takes there."""
    runsc = shutil.which("runsc")
    if runsc is None:
        pytest.skip("there is no runsc; apt-get install runsc")
    with installed("podman", like=podman_ready) as made:
        wrapper = made.ground / "runsc-ptrace"
        wrapper.write_text(WRAPPER.format(runsc=runsc))
        wrapper.chmod(0o755)
        yield made, str(wrapper)


def test_an_agent_works_sealed_under_gvisor(gvisor: tuple[Installation, str]):
    place, wrapper = gvisor

    done = place.run(ASK, "--oci-runtime", wrapper, agent="scripted")

    assert done.code == 0, done
    shown = place.show()
    said = [event["text"] for event in shown["trace"] if event["kind"] == "text"]
    assert said == [
        "kernel 1 SMP Sun Jan 10 15:06:54 PST 2016",  # what gVisor calls itself, always
        "interfaces 1 user 1000:1000",
        "no way out: 7",
    ]
    assert place.row["calls_completed"] == 1
    assert json.loads((place.work / "answer").read_text())["model"] == "rehearsal"
    checks = json.loads(place.row["certificate"])["checks"]
    assert {each["name"]: each["verdict"] for each in checks}["namespace"] == "closed"
    place.nothing_left()


def test_a_shell_there_is_under_gvisor_as_well(gvisor: tuple[Installation, str]):
    place, wrapper = gvisor
    words = ["shell", "-q", "--runtime", "podman", "--agent", "scripted", "--no-network"]
    words += ["--workdir", str(place.work), "--oci-runtime", wrapper]

    done = place.sanduk(*words, stdin=b"dmesg | head -1; exit 4\n")

    assert done.code == 4
    assert "Starting gVisor" in done.out
    place.nothing_left()


def test_a_runtime_that_is_not_there_refuses_the_run(docker: Installation):
    done = docker.run("true", "--oci-runtime", "no-such-runtime")

    assert done.code == 2
    assert "no-such-runtime" in done.line
    docker.nothing_left()
