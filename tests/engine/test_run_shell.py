"""`sanduk shell`: a person at a terminal, or a script, in the box an agent would get."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine.running import DONE, SANDUK, Installation

pytestmark = pytest.mark.engine
SIZE = struct.pack("HHHH", 31, 97, 0, 0)  # rows, columns


def words(place: Installation, *flags: str) -> list[str]:
    return [
        "shell", "--runtime", place.engine, "--agent", "scripted", "--provider", "rehearsal",
        "--workdir", str(place.work), *flags,
    ]  # fmt: skip


class Person:
    """Somebody at a terminal of 97 columns who types, and reads what comes."""

    def __init__(self, place: Installation, command: list[str]) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, SIZE)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.seen = ""
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", str(SANDUK), *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**place.environment, "TERM": "dumb"},
            cwd=place.ground,
        )

    def until(self, word: str, *, limit_s: float = 30) -> str:
        """Everything that was shown until `word` came; what follows is kept for later."""
        deadline = time.monotonic() + limit_s
        while word not in self.seen:
            assert time.monotonic() < deadline, f"{word!r} not in {self.seen!r}"
            if select.select([self.master], [], [], 0.2)[0]:
                self.seen += os.read(self.master, 65536).decode("utf-8", "replace")
        shown, _, self.seen = self.seen.partition(word)
        return shown

    def types(self, text: str) -> Person:
        os.write(self.master, text.encode())
        return self

    def asks(self, line: str) -> str:
        """The output of one command line."""
        # the quotes keep both words out of the echo of what is typed
        self.types(f"echo be''gun; {line}; echo en''ded\n").until("begun\r\n")
        return self.until("ended\r\n")

    def end(self) -> int:
        return self.process.wait(30)


def executor(place: Installation) -> int:
    """The pid of the process that holds the newest run."""
    return int(place.row["lease_owner"].split("/")[3])


@contextlib.contextmanager
def sitting(place: Installation, *command: str) -> Iterator[Person]:
    """Somebody before a shell in the box: `sanduk shell`, or what else was typed."""
    person = Person(place, list(command) or words(place))
    try:
        person.until("$ ")
        yield person
    finally:
        person.process.kill()
        person.process.wait()
        os.close(person.master)
        os.close(person.slave)


def test_a_person_gets_a_terminal_in_the_sealed_box(installation: Installation):
    with sitting(installation) as person:
        # a client may tell the size a moment after the start
        size = person.asks("until stty size | grep -v '^0'; do sleep 0.1; done")
        place = person.asks("pwd; id -u; cat /proc/net/route | wc -l; ls /sys/class/net")
        row = installation.row
        (container,) = installation.containers("shell")
        person.types("exit 7\n")
        code = person.end()
        terminal = termios.tcgetattr(person.slave)

    assert size.split() == ["31", "97"]
    owner = os.geteuid() or 1000  # a directory made for somebody who is not root
    assert place.split() == ["/work", str(owner), "1", "lo"]
    assert (row["state"], row["kind"], row["mode"]) == ("running", "command", "sealed")
    assert len(container) == 64
    assert code == 7
    assert terminal == person.before, "the terminal is given back as it was"
    ended = installation.row
    assert (ended["outcome"], ended["exit_code"], ended["agent_exit_code"]) == ("failed", 1, 7)
    assert json.loads(ended["certificate"])["headline"].startswith("sealed: nothing answers")
    installation.nothing_left()


def test_ctrl_c_belongs_to_what_runs_in_the_shell(installation: Installation):
    with sitting(installation) as person:
        person.types("sleep 100\n").until("sleep 100\r\n")
        time.sleep(0.5)
        person.types("\x03").until("$ ")
        said = person.asks("echo still here")
        person.types("exit\n")
        # the shell says the code of what was interrupted only if nothing came after it
        assert person.end() == 0

    assert "still here" in said
    assert installation.row["outcome"] == "succeeded"


def test_a_terminal_that_goes_away_ends_the_shell(docker: Installation):
    with sitting(docker) as person:
        os.kill(executor(docker), signal.SIGHUP)
        code = person.end()

    assert code == 143
    assert docker.row["outcome"] == "interrupted"
    docker.nothing_left()


def inside(place: Installation, role: str) -> dict[str, Any]:
    """The container as the engine has it, without what is this one's own."""
    (container,) = place.containers(role)
    (found,) = json.loads(place.engine_says("inspect", container))
    host = found["HostConfig"]
    for name in ("NetworkMode", "ContainerIDFile", "Mounts"):
        host.pop(name)
    mounts = sorted((each["Destination"], each["RW"]) for each in found["Mounts"])
    return {"host": host, "mounts": mounts, "user": found["Config"]["User"]}


def test_the_box_is_the_one_an_agent_gets(docker: Installation):
    with sitting(docker):
        of_shell = inside(docker, "shell")
        docker.sanduk("stop", docker.row["uid"])
    agent = docker.begin('echo \'{"type": "text", "text": "ready"}\'; sleep 60', agent="scripted")
    of_agent = inside(docker, "agent")
    agent.signal(signal.SIGINT).end()

    assert of_shell == of_agent
    assert of_shell["host"]["CapDrop"] == ["ALL"]


def test_commands_come_from_standard_input_and_the_code_is_theirs(installation: Installation):
    script = b"echo out; echo err >&2; cat > copy <<X\nkept\nX\nexit 5\n"

    done = installation.sanduk(*words(installation, "-q"), stdin=script)

    assert (done.code, done.out, done.err) == (5, "out\n", "err\n")
    assert (installation.work / "copy").read_text() == "kept\n"
    assert installation.row["task"] == "commands from standard input"
    installation.nothing_left()


def test_the_relay_answers_in_it_and_the_key_stays_outside(docker: Installation):
    ask = (
        'curl -s -o /dev/null -w "%{http_code}\\n" -H "Authorization: Bearer $RELAY_TOKEN" '
        '-H "content-type: application/json" -d \'{"model": "rehearsal", "messages": '
        '[{"role": "user", "content": "hello"}]}\' "$RELAY_URL/chat/completions"\n'
        'env | grep -c "sk-canary" || :\n'
    )
    done = docker.sanduk(*words(docker, "-q"), stdin=ask.encode(), OPENAI_API_KEY="sk-canary-1")

    assert (done.code, done.out.split()) == (0, ["200", "0"]), done
    assert docker.row["calls_relayed"] == 1


def test_without_network_an_agent_that_calls_a_model_still_has_a_shell(docker: Installation):
    done = docker.sanduk(
        "shell", "-q", "--runtime", "docker", "--agent", "scripted", "--no-network",
        "--workdir", str(docker.work), stdin=b"ls /sys/class/net; env | grep -c RELAY_\n",
    )  # fmt: skip

    assert (done.code, done.out.split()) == (1, ["lo", "0"]), done
    assert docker.row["mode"] == "no-network"


def test_a_report_that_lies_there_stays_where_it_is(docker: Installation):
    docker.work.mkdir()
    if os.geteuid() == 0:
        os.chown(docker.work, 1000, 1000)
    (docker.work / "REPORT.md").write_text("what a person wrote")

    done = docker.sanduk(*words(docker, "-q"), stdin=b"cat REPORT.md\n")

    assert (done.code, done.out, done.err) == (0, "what a person wrote", "")
    assert docker.row["report_state"] == ""


def test_a_killed_shell_leaves_nothing(installation: Installation):
    with sitting(installation):
        os.kill(executor(installation), signal.SIGKILL)
        installation.nothing_left(within_s=8)

    assert installation.sanduk("ps").code == 0
    assert installation.row["outcome"] == "interrupted"


def test_the_time_limit_ends_it(docker: Installation):
    with sitting(docker, *words(docker, "--timeout", "4")) as person:
        shown = person.until("--timeout)", limit_s=20)
        code = person.end()

    assert "sanduk: ending: not done within 4" in shown
    assert code == 124
    docker.nothing_left()


def test_stop_ends_it_and_ps_shows_it(docker: Installation):
    with sitting(docker) as person:
        uid = docker.row["uid"]
        listed = json.loads(docker.sanduk("ps", "--json").out)
        stopped = docker.sanduk("stop", uid)
        code = person.end()

    assert {row["role"]: row["run_state"] for row in listed} == {
        "shell": "running",
        "link": "running",
    }
    assert (stopped.code, code) == (0, 130), stopped
    docker.nothing_left()


def test_another_run_in_its_workdir_is_refused(docker: Installation):
    with sitting(docker):
        refused = docker.run(DONE)
        docker.sanduk("stop", docker.row["uid"])

    assert refused.code == 2
    assert "works in" in refused.err
